//! What a worker does that follows one which was killed.

use crate::flow::Flow;
use crate::link::Left;

/// Says what has ended with the worker before this one, and looks after the processes that it had started.
pub(crate) fn follow(flow: &mut Flow<'_>) {
    let Some(left) = flow.driver.link.as_mut().and_then(|link| link.left.take()) else {
        return;
    };
    let Left {
        end,
        streams,
        jobs,
        starters,
        begins_clean,
    } = left;
    let ended = end.ended();
    let lost = match (streams, jobs) {
        (0, 0) => "it had no stream and no job".to_owned(),
        _ => format!("{streams} streams and {jobs} jobs ended with it"),
    };
    flow.driver.say(format_args!(
        "its worker, process {}, {ended}; {lost}; a new one serves",
        ended.process
    ));
    if begins_clean {
        flow.driver
            .say("that was the third end within ten seconds: the new worker takes nothing over");
    }
    let (commands, mut context) = flow.commands_and_context();
    commands.follow(&mut context, &starters);
}
