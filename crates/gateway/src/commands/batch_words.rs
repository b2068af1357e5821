//! Arguments for processes that deal with the site's batch system.

use crate::config::Config;
use crate::config::batch::Batch;
use std::ffi::OsString;

/// Arguments of the processes that ask the batch system something.
pub(super) fn asking_arguments(config: &Config, batch: &Batch) -> Vec<OsString> {
    let mut arguments = vec![OsString::from(format!("--system={}", batch.system))];
    if let Some(conf) = &batch.conf {
        arguments.extend(["--conf".into(), conf.clone().into_os_string()]);
    }
    let subnets = config.subnets.iter();
    arguments.extend(subnets.map(|subnet| OsString::from(format!("--subnet={subnet}"))));
    arguments
}

/// How `start-node` starts processes for a job of this site: the words of its shell, and what it is told
/// about the batch system. The allocation is given as an id and the slots of its nodes.
pub(super) fn start_arguments(
    config: &Config,
    site: &str,
    allocation: Option<&(String, Vec<u32>)>,
) -> (Vec<String>, Vec<OsString>) {
    let remote_shell = config.remote_shell_of(site);
    let (Some(batch), Some((id, slots))) = (&config.batch, allocation) else {
        return (remote_shell, Vec::new());
    };
    let start = batch.system.start(id, &remote_shell, batch.conf.as_deref());
    let slots: Vec<String> = slots.iter().map(u32::to_string).collect();
    let mut arguments = vec![
        OsString::from(format!("--batch={}", batch.system)),
        OsString::from(format!("--slots={}", slots.join(","))),
    ];
    if let Some(conf) = &batch.conf {
        arguments.extend(["--batch-conf".into(), conf.clone().into_os_string()]);
    }
    let task = start.task.into_iter();
    arguments.extend(task.map(|word| OsString::from(format!("--task={word}"))));
    (start.words, arguments)
}
