//! QCG's XML: Fig. 3 of coti-2011 with what it leaves out, what is not understood, and what cannot be
//! expressed.

use super::*;

/// The elements of the figure, with a second group and with what it only suggests.
const FIGURE: &str = r#"<grmsJob appId="ray2mesh">
  <resourceTemplates>
    <!-- networks -->
    <networkResourceTemplate templateId="net-high">
      <networkParameter name="bandwidth"><min>5120</min></networkParameter>
    </networkResourceTemplate>
    <networkResourceTemplate templateId="net-local">
      <networkParameter name="latency"><max> 5 </max></networkParameter>
    </networkResourceTemplate>
  </resourceTemplates>
  <task taskId="ray2mesh-task1">
    <resourcesDescription>
      <topology>
        <group groupId="central_master">
          <processes>
            <processesCount><value>2</value></processesCount>
            <resourceRequirements>
              <computingResource>
                <hostParameter name="memory"><min>2000</min></hostParameter>
                <hostParameter name="cpucount"><min>4</min></hostParameter>
              </computingResource>
            </resourceRequirements>
          </processes>
          <processesConnection>
            <networkResource><templateIdReference templateId="net-local"/></networkResource>
            <groupConnection endpointGroupId="group1">
              <networkResource><templateIdReference>net-high</templateIdReference></networkResource>
            </groupConnection>
          </processesConnection>
        </group>
        <group groupId="group1">
          <processes><processesCount><value>30</value></processesCount></processes>
        </group>
      </topology>
    </resourcesDescription>
    <execution type="open_mpi">
      <executable><execFile><url>./ray2mesh</url></execFile></executable>
      <arguments><value>a &amp; b</value></arguments>
    </execution>
    <executionTime><executionDuration>PT1H</executionDuration></executionTime>
  </task>
</grmsJob>
"#;

const SAME: &str = r#"name = "ray2mesh"
time = "1h"
command = ["mpirun", "./ray2mesh", "a & b"]

[network.net-high]
bandwidth = { min = "5120kB/s" }

[network.net-local]
latency = { max = "5ms" }

[groups.central_master]
ranks = 2
cores = 4
memory = "2GB"
within = "net-local"
to.group1 = "net-high"

[groups.group1]
ranks = 30
"#;

fn warnings(text: &str) -> Vec<String> {
    let read = read(text, "job")
        .finish()
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let lines = read
        .warnings
        .iter()
        .map(|line| line.strip_prefix("job:").unwrap().to_owned());
    lines.collect()
}

#[test]
fn the_figure_is_read_and_its_units_are_told() {
    assert_eq!(to_toml(&profile(FIGURE)), SAME);
    let units = "5: units: QCG's XML names none; bandwidth is taken for kB/s, latency for ms, memory for MB of each rank";
    assert_eq!(warnings(FIGURE), [units]);
    assert_eq!(profile(&to_xml(&profile(SAME)).unwrap()), profile(SAME));
}

#[test]
fn qcgs_other_name_for_the_description_is_read_too() {
    let text = FIGURE.replace("resourcesDescription>", "requirements>");
    assert_eq!(to_toml(&profile(&text)), SAME);
}

#[test]
fn what_is_not_understood_is_told_with_its_line_and_nothing_is_dropped_in_silence() {
    let text = FIGURE
        .replace(
            "<resourceTemplates>",
            "<resourceTemplates kind=\"x\">stray<computingResourceTemplate/>",
        )
        .replace("name=\"cpucount\"", "name=\"cpuspeed\"")
        .replace("<min>5120</min>", "<min>5120</min><max>9</max>")
        .replace("</executionTime>", "</executionTime><workflow/>");
    let told = [
        "2: grmsJob/resourceTemplates@kind: is not understood and left out",
        "2: grmsJob/resourceTemplates: the text \"stray\" is not understood and left out",
        "2: grmsJob/resourceTemplates/computingResourceTemplate: is not understood and left out",
        "5: units: QCG's XML names none; bandwidth is taken for kB/s, latency for ms, memory for MB of each rank",
        "5: grmsJob/resourceTemplates/networkResourceTemplate/networkParameter/max: is not understood and left out",
        "20: grmsJob/task/resourcesDescription/topology/group/processes/resourceRequirements/computingResource/hostParameter: is a clock rate, and speed is relative here; it is left out",
        "40: grmsJob/task/workflow: is not understood and left out",
    ];
    assert_eq!(warnings(&text), told);
}

/// Parts of the figure, what replaces each, and the resulting mistakes.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "templateId=\"net-high\">",
        ">",
        "4: grmsJob/resourceTemplates/networkResourceTemplate: has no templateId\n\
             26: groups.central_master.to.group1: there is no [network.net-high]",
    ),
    (
        "5120",
        "fast",
        "5: network.net-high.bandwidth: \"fast\" is not a number from 0.125 to 125000000000, in kB/s",
    ),
    (
        "<max> 5 </max>",
        "<max/>",
        "8: network.net-local.latency: has no max with a number",
    ),
    (
        "<min>2000</min>",
        "<min>x</min>",
        "19: groups.central_master.memory: \"x\" is not a number from 0.000001 to 1000000000, in MB",
    ),
    (
        "<min>4</min>",
        "<min>x</min>",
        "20: groups.central_master.cores: \"x\" is not a whole number from 1 to 4096",
    ),
    (
        "\"cpucount\"><min>4<",
        "\"memory\"><min>4<",
        "20: groups.central_master.memory: is there twice",
    ),
    (
        "endpointGroupId=\"group1\"",
        "endpointGroupId=\"other\"",
        "26: groups.central_master.to.other: there is no [groups.other]",
    ),
    (
        "<value>30</value>",
        "<value>0</value>",
        "32: groups.group1.ranks: \"0\" is not a whole number from 1 to 1000000",
    ),
    (
        "<value>30</value>",
        "",
        "32: groups.group1.ranks: there is no processesCount with a value",
    ),
    (
        "groupId=\"group1\"",
        "groupId=\"central_master\"",
        "26: groups.central_master.to.group1: there is no [groups.group1]\n\
             31: groups.central_master: is there twice",
    ),
    (
        "open_mpi",
        "prun",
        "36: grmsJob/task/execution: has no type that is known: open_mpi, mpi",
    ),
    (
        "<url>./ray2mesh</url>",
        "",
        "36: grmsJob/task/execution: has no executable with an execFile with a url",
    ),
    (
        "PT1H",
        "P1Y",
        "40: time: is not a duration such as PT1H30M, of 1 s to 365 days",
    ),
    (
        "</grmsJob>",
        "<task/></grmsJob>",
        "42: grmsJob/task: is a second task; a profile is one",
    ),
    (
        "net-high</templateIdReference>",
        "</templateIdReference>",
        "27: grmsJob/task/resourcesDescription/topology/group/processesConnection/groupConnection/\
             networkResource/templateIdReference: names no template",
    ),
    (
        "<topology>",
        "<topology/><topology>",
        "13: grmsJob/task/resourcesDescription/topology: names no group\n\
             13: grmsJob/task/resourcesDescription/topology: is there twice",
    ),
];

#[test]
fn each_mistake_in_xml_is_told_with_its_line() {
    for (from, to, known) in WRONG {
        let told = mistakes(&FIGURE.replacen(from, to, 1));
        assert_eq!(told, known.lines().collect::<Vec<_>>(), "{from} -> {to}");
    }
}

#[test]
fn what_is_no_such_xml_is_told() {
    assert_eq!(
        mistakes("<qcgJob/>"),
        ["1: qcgJob: is not grmsJob, with which QCG's profiles begin"]
    );
    assert!(mistakes("\n<grmsJob>\n<task>\n</grmsJob>")[0].starts_with("4: is no XML: "));
    let entities = "<!DOCTYPE x [<!ENTITY a \"b\">]><grmsJob appId=\"&a;\"/>";
    assert!(mistakes(entities)[0].starts_with("1: is no XML: "));
    assert_eq!(mistakes("<grmsJob/>"), ["1: grmsJob: has no task"]);
}

#[test]
fn what_xml_cannot_say_is_named() {
    let unsaid = to_xml(&profile(WHOLE)).unwrap_err();
    let known = [
        "network.net-local.loss: QCG's XML has no loss",
        "groups.central_master.speed: QCG's XML has clock rates alone",
        "groups.central_master.features: QCG's XML has none",
        "groups.central_master.sites: QCG's XML has none for a group",
        "groups.group1.alternatives: QCG's XML has none",
    ];
    assert_eq!(unsaid.0, known);
    for (text, known) in [
        (
            "command = 'srun ./x'\n[groups.a]\nranks = 1",
            "command: QCG's XML has mpirun and a program, and no other launcher or option of it",
        ),
        (
            "command = 'mpirun -x A ./x'\n[groups.a]\nranks = 1",
            "command: QCG's XML has mpirun and a program, and no other launcher or option of it",
        ),
        (
            "program = ['./x', ' a']\n[groups.a]\nranks = 1",
            "program: \" a\": XML has no empty words, blanks around words, or U+FFFE and U+FFFF",
        ),
        (
            "[groups.a]\nranks = '0'",
            "groups.a.ranks: QCG's XML has the number of ranks alone",
        ),
        (
            "[groups.a]\nranks = 1\nprogram = 'x'",
            "groups.a.program: QCG's XML has one for the whole task",
        ),
    ] {
        assert_eq!(to_xml(&profile(text)).unwrap_err().0, [known]);
    }
}
