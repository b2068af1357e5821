//! `causeway resources` shows what a file says, in each form, and reads its own JGF.

use std::path::Path;
use std::process::{Command, Output};

const CLUSTER: &str = r#"{"graph": {
  "nodes": [
    {"id": "0", "metadata": {"type": "cluster", "name": "tiny0"}},
    {"id": "1", "metadata": {"type": "node", "name": "n0"}},
    {"id": "2", "metadata": {"type": "core", "size": 4}},
    {"id": "3", "metadata": {"type": "gpu"}}
  ],
  "edges": [
    {"source": "0", "target": "1"}, {"source": "1", "target": "2"}, {"source": "1", "target": "3"}
  ]}}"#;

fn resources(file: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.arg("resources").args(words).arg("--from").arg(file);
    // No gateway is asked.
    command.env("CAUSEWAY_CONTROL", "/nowhere/gateway.sock");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_file_of_flux_is_shown_in_each_form_and_its_mistakes_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cluster.json");
    std::fs::write(&file, CLUSTER).unwrap();
    let shown = resources(&file, &[]);
    let (out, errors) = (text(&shown.stdout), text(&shown.stderr));
    assert_eq!(shown.status.code(), Some(0), "{errors}");
    assert!(out.contains("tiny0 (1 node, 4 slots)"), "{out}");
    assert!(
        errors.contains("vertices of type gpu are left out: 1"),
        "{errors}"
    );
    let json = text(&resources(&file, &["--json"]).stdout);
    assert!(json.contains("\"slots\": 4"), "{json}");
    let dot = text(&resources(&file, &["--dot"]).stdout);
    assert!(dot.starts_with("digraph \"grid\" {"), "{dot}");

    let jgf = resources(&file, &["--jgf"]).stdout;
    let again = directory.path().join("again.json");
    std::fs::write(&again, jgf).unwrap();
    assert_eq!(text(&resources(&again, &[]).stdout), out);

    // Files of several sites make one graph, and a site that is in two of them is in it once.
    let both = resources(&file, &["--from", again.to_str().unwrap()]);
    assert_eq!(text(&both.stdout), out);

    std::fs::write(&file, CLUSTER.replace("\"size\": 4", "\"size\": -4")).unwrap();
    let refused = resources(&file, &[]);
    let errors = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("cluster.json: graph.nodes[2].metadata.size: is not a whole number from 0"),
        "{errors}"
    );
    std::fs::remove_file(&file).unwrap();
    assert_eq!(resources(&file, &[]).status.code(), Some(1));
}
