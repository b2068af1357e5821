//! Arguments of the processes that have to do with the site's batch system.

use crate::config::Config;
use crate::config::batch::Batch;
use std::ffi::OsString;

/// What those are told who ask the batch system something.
pub(super) fn asking_arguments(config: &Config, batch: &Batch) -> Vec<OsString> {
    let mut arguments = vec![OsString::from(format!("--system={}", batch.system))];
    if let Some(conf) = &batch.conf {
        arguments.extend(["--conf".into(), conf.clone().into_os_string()]);
    }
    let subnets = config.subnets.iter();
    arguments.extend(subnets.map(|subnet| OsString::from(format!("--subnet={subnet}"))));
    arguments
}

/// How `start-node` starts processes in an allocation for a job of this site: the words of its shell, and what
/// it is told of the batch system.
pub(super) fn start_arguments(
    (config, batch): (&Config, &Batch),
    site: &str,
    id: &str,
    slots: &[u32],
) -> (Vec<String>, Vec<OsString>) {
    let remote_shell = config.remote_shell_of(site);
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
