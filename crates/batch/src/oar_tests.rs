//! Answers of OAR 2.5.9, without what is not read.

use super::*;
use crate::System;

const LISTED: &str = r#"{
   "3" : {
      "name" : "causeway-y", "state" : "Running", "startTime" : 1795803571, "scheduledStart" : 1795803571,
      "walltime" : 600, "message" : "R=6,W=0:10:0,J=B,N=causeway-y (Karma=0.000,quota_ok)",
      "assigned_network_address" : [ "r-2", "r-1" ], "assigned_resources" : [ 1, 2, 3, 4, 5, 6 ]
   },
   "4" : {
      "name" : "causeway-z", "state" : "Waiting", "startTime" : 0, "scheduledStart" : 1795804173,
      "message" : "R=6,W=0:10:0,J=B,N=causeway-z (Karma=0.000,quota_ok)", "assigned_network_address" : []
   },
   "5" : {
      "name" : null, "state" : "Hold", "startTime" : 0, "scheduledStart" : null,
      "message" : "R=1,W=0:10:0,J=B,N=causeway-h", "assigned_network_address" : []
   },
   "6" : {
      "name" : "gone", "state" : "Error", "startTime" : 0, "scheduledStart" : null,
      "message" : "Job killed by Leon directly", "assigned_network_address" : []
   },
   "7" : { "name" : "begins", "state" : "Launching", "startTime" : 1795803571,
      "message" : "", "assigned_network_address" : [ "r-1" ] }
}"#;

fn request(options: &[&str]) -> Request {
    Request {
        ranks: 16,
        minutes: 90,
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    }
}

#[test]
fn an_allocation_is_used_while_it_runs() {
    let running = |id: &str| System::Oar.running(id, LISTED).map_err(|error| error.to_string());
    assert_eq!(running("3").as_deref(), Ok("r-2,r-1"));
    assert_eq!(
        running("4").unwrap_err(),
        "allocation 4 is not running: it is Waiting"
    );
    assert!(running("7").unwrap_err().ends_with("it is Launching"));
    assert!(running("99").unwrap_err().contains("no allocation 99"));
    // If this user has no job, oarstat prints nothing.
    assert!(listed("").is_empty() && listed("no list").is_empty());
}

#[test]
fn a_job_that_waits_says_until_when() {
    let listed = listed(LISTED);
    let told = { listed.iter() }.map(|job| (job.state, job.start, job.reason.as_str()));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            (State::Active, Some(1_795_803_571), "its time is planned"),
            (State::Queued, Some(1_795_804_173), "its time is planned"),
            (State::Queued, None, "it is held back"),
            (State::Ended, None, "Job killed by Leon directly"),
            (State::Queued, Some(1_795_803_571), "it is being launched"),
        ]
    );
    assert_eq!(
        (listed[0].name.as_str(), listed[2].name.as_str()),
        ("causeway-y", "")
    );
}

#[test]
fn a_request_becomes_words_of_oarsub() {
    let site = [
        "--queue=fast",
        "--property=cluster='a'",
        "--property=mem > 9",
        "--type=besteffort",
    ];
    let site = site.map(str::to_owned);
    for option in &site {
        assert_eq!(check_option(option), Ok(()), "{option}");
    }
    let words = submit_words(
        "causeway-1",
        &request(&["--queue=slow", "--project=p7"]),
        0,
        &site,
    );
    assert_eq!(words[..4], ["/bin/sh", "-c", SUBMIT, "causeway-1"]);
    let words = words[4..].join(" ");
    for word in [
        "--queue slow ",
        "--project p7 ",
        "--property (cluster='a') AND (mem > 9) ",
        "--type besteffort ",
        "--resource /resource_id=16,walltime=1:30:00",
        "--name causeway-1 ",
    ] {
        assert!(words.contains(word), "{words}");
    }
    assert!(!words.contains("fast") && !words.contains("--hold"));
    let later = submit_words("causeway-1", &request(&[]), 90, &[]);
    assert!(later.contains(&"--hold".to_owned()));
    for wrong in [
        "--queue",
        "-q",
        "--qos=x",
        "--type=deploy",
        "--type=noop=standby",
        "--hold=1",
    ] {
        assert!(check_option(wrong).is_err(), "{wrong}");
    }
    assert!(is_never_chosen("property").is_some() && is_never_chosen("queue").is_none());
}

#[test]
fn the_id_comes_after_what_the_sites_rules_say() {
    let said = "[ADMISSION RULE] Modify resource description with type constraints\nOAR_JOB_ID=12\n";
    assert_eq!(submitted(said).as_deref(), Some("12"));
    assert_eq!(submitted("OAR_JOB_ID=-5"), None);
    assert_eq!(submitted("Generate a job key..."), None);
}

#[test]
fn a_node_has_a_slot_for_each_of_its_resources() {
    const RESOURCES: &str = " network_address = 'r-2' , cpuset = '0' , type = 'default' \n \
        type = 'default' , cpuset = '0' , network_address = 'r-1' \n \
        cpuset = '1' , network_address = 'r-1' , type = 'default' \n type = 'licence' , network_address = '' \n";
    let nodes = |list: &str, answer: &str| {
        let found = nodes("3", list, &[answer.to_owned()]).map_err(|error| error.to_string())?;
        let shown = { found.iter() }.map(|node| format!("{} {}", node.address, node.slots));
        Ok::<String, String>(shown.collect::<Vec<_>>().join(", "))
    };
    assert_eq!(nodes("r-2,r-1", RESOURCES).as_deref(), Ok("r-1 2, r-2 1"));
    for (list, answer) in [
        ("r-1,r-3", RESOURCES),
        ("r-1", ""),
        ("r-1", "network_address = r-1"),
    ] {
        assert!(nodes(list, answer).is_err(), "{list} {answer}");
    }
}

#[test]
fn a_process_starts_in_the_job_and_no_other_learns_of_it() {
    let start = start("12");
    assert_eq!(start.words[5..], ["OAR_JOB_ID=12", "oarsh", "{node}"]);
    assert!(start.task.is_empty());
    for name in ["OAR_JOB_ID", "OARDO_USER", "OARDIR", "PMI_RANK"] {
        assert!(is_of_a_process(name), "{name}");
    }
    assert!(!is_of_a_process("OARS") && !is_of_a_process("PATH"));
}
