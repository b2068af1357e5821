//! Answers of Slurm 22.05.

use super::*;
use crate::System;

const LISTED: &str = "2|2|RUNNING|a-[1-2]|1795761600|None|run|two\n3|3|PENDING||N/A|Resources|x\n4|4|CANCELLED|a-1|1|None|y\n\
     9|7_1|RUNNING|a-3|1|None|z\n11|10+1|RUNNING|a-4|1|None|z\n";

// The answer of Slurm 22.05.8.
const JOB: &str = "JobId=2 JobName=Nodes= CPUs/Task=9 UserId=root(0) GroupId=root(0) MCS_label=N/A JobState=RUNNING \
    NodeList=a-[1-3] NumNodes=3 NumCPUs=10 NumTasks=3 CPUs/Task=2 ReqB:S:C:T=0:0:*:* JOB_GRES=(null) \
    Nodes=a-[1-2] CPU_IDs=0-3 Mem=0 GRES= Nodes=a-3 CPU_IDs=0,2 Mem=0 GRES= MinCPUsNode=1 Power=";
const NODES: &str = "NodeName=a-1 Arch=x86_64 NodeAddr=10.1.0.1 NodeHostName=a-1 Version=22.05.8\n\
    NodeName=a-2 Arch=x86_64 NodeAddr=10.1.0.2 NodeHostName=a-2\n\
    NodeName=a-3 Arch=x86_64 NodeAddr=host-3 NodeHostName=a-3\n";

#[test]
fn an_allocation_is_used_while_it_runs() {
    let running = |id: &str, answer: &str| System::Slurm.running(id, answer);
    assert_eq!(running("2", LISTED).as_deref(), Ok("a-[1-2]"));
    assert_eq!(
        running("3", LISTED).unwrap_err().to_string(),
        "allocation 3 is not running: it is PENDING"
    );
    assert!(matches!(
        running("4", LISTED),
        Err(AllocationError::NotRunning(..))
    ));
    assert!(matches!(running("22", LISTED), Err(AllocationError::Unknown(_))));
    assert_eq!(running("7_1", LISTED).as_deref(), Ok("a-3"));
    assert_eq!(running("10+1", LISTED).as_deref(), Ok("a-4"));
    assert!(matches!(running("2", ""), Err(AllocationError::Unknown(_))));
    let listed = listed(LISTED);
    assert_eq!(
        (listed[0].start, listed[0].name.as_str()),
        (Some(1_795_761_600), "run|two")
    );
    assert!(listed[2].has_ended() && !listed[1].has_ended() && listed[1].start.is_none());
}

#[test]
fn a_request_becomes_words_and_answers_are_read() {
    let request = Request {
        ranks: 16,
        minutes: 60,
        options: vec!["--partition=fast".into()],
    };
    let words = submit_words("causeway-1", &request, 90, &["--account=p7".into()]);
    let words = words.join(" ");
    for word in [
        "--ntasks=16",
        "--time=60",
        "--account=p7 --partition=fast",
        "--begin=now+90",
    ] {
        assert!(words.contains(word), "{words}");
    }
    let said = "sbatch: Job 2 to start at 1795761600 using 2 processors on nodes a-[1-2] in partition all";
    assert_eq!(estimate(said), Some(1_795_761_600));
    let refused = "sbatch: allocation failure: Requested node configuration is not available";
    assert_eq!(estimate(refused), None);
    let partition = "sbatch: allocation failure: Invalid partition name specified";
    assert!(lacks_nodes(refused) && !lacks_nodes(partition));
    assert_eq!(submitted("12\n").as_deref(), Some("12"));
    assert_eq!(submitted("12;cluster\n").as_deref(), Some("12"));
    assert_eq!(submitted("Submitted batch job"), None);
    assert!(
        is_refused("PartitionTimeLimit")
            && is_refused("QOSMaxCpuPerJobLimit")
            && !is_refused("QOSMaxCpuPerUserLimit")
            && !is_refused("Resources")
    );
}

#[test]
fn nodes_have_addresses_and_as_many_slots_as_tasks_have_room() {
    let nodes = nodes("2", "a-[1-3]", &[JOB.into(), NODES.into()]).unwrap();
    let shown = nodes
        .iter()
        .map(|node| format!("{} {} {}", node.name, node.address, node.slots));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        ["a-1 10.1.0.1 2", "a-2 10.1.0.2 2", "a-3 host-3 1"]
    );
}

#[test]
fn a_process_in_a_heterogeneous_allocation_runs_in_its_first_component() {
    let own = |components: Option<&str>| {
        let present = |name: &str| match name {
            OWN_ALLOCATION => Some("10".into()),
            COMPONENTS => components.map(Into::into),
            _ => None,
        };
        crate::own_id(OWN_ALLOCATION, present).unwrap()
    };
    assert_eq!((own(None), own(Some("2"))), ("10".to_owned(), "10+0".to_owned()));
    let listed = "10|10+0|RUNNING|a-1|N/A|None|x\n11|10+1|RUNNING|a-2|N/A|None|x\n";
    let running = |id| {
        crate::System::Slurm
            .running(id, listed)
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        (running("10+0"), running("10+1")),
        (Ok("a-1".into()), Ok("a-2".into()))
    );
    assert!(running("11").unwrap_err().contains("such as 10+1"));
}

#[test]
fn of_an_array_or_a_heterogeneous_allocation_one_part_is_used() {
    // What Slurm 22.05.8 answers for the number that an array shares with one of its elements.
    let both = "JobId=1 ArrayJobId=1 ArrayTaskId=2 NodeList=a-1 CPUs/Task=1 Nodes=a-1 CPU_IDs=0-1\n\
        JobId=4 ArrayJobId=1 ArrayTaskId=1 NodeList=a-1 CPUs/Task=1 Nodes=a-1 CPU_IDs=2";
    let slots = |id| nodes(id, "a-1", &[both.into(), NODES.into()]).unwrap()[0].slots;
    assert_eq!((slots("1"), slots("4")), (2, 1));
    let start = |id: &str| start_words(id).join(" ");
    assert!(start("10+1").starts_with("srun --jobid=10 --het-group=1 --overlap "));
    assert!(start("7").starts_with("srun --jobid=7 --overlap "));
    let element = start_words("7_1");
    assert_eq!(element[..2], ["/bin/sh", "-c"]);
    assert_eq!(
        element[2],
        "j=$(squeue --noheader --format=%A --jobs=7_1) && exec srun --jobid=\"$j\" \"$@\""
    );
    assert_eq!(element[3..5], ["srun", "--overlap"]);
}

#[test]
fn an_answer_of_another_form_is_told() {
    let no_address = nodes(
        "2",
        "a-[1-3]",
        &[JOB.into(), "NodeName=a-1 NodeAddr=10.1.0.1".into()],
    )
    .unwrap_err();
    assert!(
        no_address.to_string().contains("no address of node a-2"),
        "{no_address}"
    );
    for job in [
        "",
        "Nodes=a-[1 CPU_IDs=0",
        "Nodes=a-1 CPU_IDs=3-0",
        "Nodes=a-1 CPU_IDs=0-4294967295",
    ] {
        assert!(nodes("2", "a-1", &[job.into(), NODES.into()]).is_err(), "{job}");
    }
}

#[test]
fn what_describes_one_process_reaches_no_other_and_a_script_finds_its_allocation() {
    for name in [
        "SLURM_PROCID",
        "SRUN_DEBUG",
        "PMI_RANK",
        "PMIX_SERVER_URI4",
        "SLURMD_NODENAME",
    ] {
        assert!(is_of_a_process(name), "{name}");
    }
    for name in ["PATH", "OMPI_MCA_plm"] {
        assert!(!is_of_a_process(name), "{name}");
    }
    let present = |name: &str| match name {
        "SLURM_JOB_ID" => Some("7".into()),
        "SLURM_JOB_NUM_NODES" => Some("2".into()),
        "SLURM_NNODES" => Some("1".into()),
        _ => None,
    };
    let set = script_variables(&[4, 4, 1], present);
    assert!(set.contains(&("SLURM_JOBID", "7".into())) && set.contains(&("SLURM_NNODES", "2".into())));
    assert!(set.contains(&("SLURM_TASKS_PER_NODE", "4(x2),1".into())));
    assert_eq!(set.len(), 6);
}
