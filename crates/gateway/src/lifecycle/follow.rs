//! What a worker does that follows one which was killed: it goes on with what `takeup` has found, or begins
//! anew.

use crate::commands::starter::KeptStarter;
use crate::flow::Flow;
use crate::link::Left;

/// Says what has ended with the worker before this one, and looks after the processes that it had started.
pub(crate) fn follow(flow: &mut Flow<'_>, left: &Left, starters: Vec<KeptStarter>) {
    let Left {
        end,
        streams,
        jobs,
        begins_clean,
    } = *left;
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
            .say("that was the third end within ten seconds: the new worker takes nothing up");
    }
    let (commands, mut context) = flow.commands_and_context();
    commands.follow(&mut context, starters);
}

/// Says that the streams of a killed worker go on here.
pub(crate) fn tell_of_taking_up(flow: &Flow<'_>, left: &Left) {
    let ended = left.end.ended();
    flow.driver.say(format_args!(
        "its worker, process {}, {ended}; a new one goes on with its {} streams and {} jobs",
        ended.process,
        flow.site.legs().len(),
        flow.membership.jobs().len(),
    ));
}
