//! The client against a monitor that does what VICE cannot be made to do: late, split, merged, duplicated and malformed frames,
//! unknown events, storms, and both forms of the display.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod monitor;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use debug::vice::{
    Arrival, Error, EventKind, Execution, Monitor, NO_REQUEST, NewCheckpoint, Place, ResetKind, encode_response,
};
use monitor::{Monitor as Scripted, Seen, checkpoint, refusal, resumed, stopped, usual};

/// Long enough for a busy machine; nothing waits it out.
const LONG: u64 = 20_000;
const RAM: Place = Place { bank: 1, memspace: 0, start: 0, side_effects: false };
const NEW: NewCheckpoint = NewCheckpoint {
    start: 0x0930,
    end: 0x0930,
    stops: true,
    enabled: true,
    operations: 4,
    temporary: false,
    memspace: 0,
};

fn connect(scripted: &Scripted) -> Monitor {
    Monitor::connect(scripted.address, Duration::from_millis(LONG)).unwrap()
}

/// A monitor that answers one command as given, and all others as usual.
fn answering(command: u8, mut writes: impl FnMut(&Seen) -> Vec<Vec<u8>> + Send + 'static) -> Scripted {
    Scripted::start(move |seen| (seen.command == command).then(|| writes(seen)))
}

#[test]
fn connecting_finds_a_stopped_machine() {
    let scripted = Scripted::start(|_| None);
    let monitor = connect(&scripted);
    let status = monitor.status();
    assert_eq!(
        (status.execution, status.pc, status.sequence, status.commands),
        (Execution::Stopped, Some(0xE09A), 1, 0)
    );
    assert_eq!(monitor.version().to_string(), "3.7.1.0");
}

#[test]
fn frames_arrive_byte_by_byte_and_all_at_once() {
    let scripted = answering(0x71, |seen| usual(seen).into_iter().map(|byte| vec![byte]).collect());
    let monitor = connect(&scripted);
    for sequence in [3, 5] {
        let ran = monitor.step(false, 1, LONG).unwrap();
        assert_eq!((ran.event.sequence, ran.event.pc, ran.event.kind), (sequence, Some(0xE09C), EventKind::Stopped));
        assert!(ran.preceding.is_empty());
    }
}

#[test]
fn an_unknown_event_and_a_duplicated_answer_do_not_disturb() {
    let scripted = answering(0x81, |seen| {
        let unknown = encode_response(0x77, 0, NO_REQUEST, &[1, 2, 3]);
        vec![[unknown, stopped(0x0930), usual(seen), usual(seen)].concat()]
    });
    let monitor = connect(&scripted);
    monitor.resume(LONG).unwrap();
    assert_eq!(monitor.interrupt(LONG).unwrap().event.pc, Some(0x0930));
    assert_eq!(monitor.registers(&[], 0, LONG).unwrap().len(), 2);
}

#[test]
fn a_late_answer_is_dropped_and_the_next_call_gets_its_own() {
    let mut first = true;
    let scripted = Scripted::start(move |seen| match seen.command {
        // Nothing for the first read, and with the next request what it should have been.
        0x01 if std::mem::take(&mut first) => Some(Vec::new()),
        0x31 => Some(vec![[encode_response(0x01, 0, seen.id - 1, &[1, 0, 0xEE]), usual(seen)].concat()]),
        _ => None,
    });
    let monitor = connect(&scripted);
    let late = monitor.read_memory(RAM, 0, 1, 50).unwrap_err();
    assert!(matches!(&late, Error::TimedOut { request: Some(_), changed: false, .. }), "{late}");
    assert!(late.outcome_unknown() && late.code() == "vice_timeout");
    assert_eq!(monitor.registers(&["A".to_owned()], 0, LONG).unwrap()[0].value, 5);
    assert_eq!(monitor.read_memory(Place { start: 7, ..RAM }, 7, 1, LONG).unwrap().bytes, [7]);
}

#[test]
fn malformed_frames_end_the_connection_in_words() {
    for bad in [vec![9, 9, 9, 9], encode_response(0x85, 0, 3, &[]), encode_response(0x62, 0, NO_REQUEST, &[1])] {
        let scripted = answering(0x31, move |_| vec![bad.clone()]);
        let monitor = connect(&scripted);
        let error = monitor.registers(&[], 0, LONG).unwrap_err();
        assert!(error.is_terminal() && error.code() == "vice_protocol_error", "{error}");
        assert!(monitor.registers(&[], 0, LONG).is_err());
        assert_eq!(monitor.status().execution, Execution::Unknown);
        assert!(monitor.wait_for_stop(9, LONG).unwrap_err().is_terminal());
    }
}

#[test]
fn a_closed_connection_ends_what_waits() {
    let scripted = Scripted::start(|seen| {
        assert!(seen.command != 0x31, "ends the monitor");
        None
    });
    let monitor = connect(&scripted);
    assert_eq!(monitor.registers(&[], 0, LONG).unwrap_err().code(), "vice_connection_lost");
}

#[test]
fn a_storm_of_hits_neither_keeps_answers_back_nor_grows() {
    let scripted = Scripted::start(|seen| match seen.command {
        0xAA => Some(vec![usual(seen), checkpoint(7, false, NO_REQUEST).repeat(50_000)]),
        0x81 => Some(vec![[stopped(0x0930), usual(seen)].concat()]),
        _ => None,
    });
    let monitor = connect(&scripted);
    let ran = monitor.resume(LONG).unwrap();
    assert_eq!(ran.event.kind, EventKind::Resumed);
    // Its answer comes behind 50,000 frames.
    let stop = monitor.interrupt(LONG).unwrap();
    assert_eq!(stop.preceding.len(), base::limits::MAX_VICE_PRECEDING);
    // A stop, a resumption, 50,000 hits, a stop.
    assert_eq!((stop.event.sequence, monitor.status().sequence), (50_003, 50_003));
    assert!(matches!(monitor.wait_for_stop(0, LONG), Err(Error::HistoryLost { oldest: 1, .. })));
}

#[test]
fn a_checkpoint_that_stops_first_supersedes_the_interrupt() {
    let scripted =
        answering(0x81, |seen| vec![[checkpoint(3, true, NO_REQUEST), stopped(0x0930), usual(seen)].concat()]);
    let monitor = connect(&scripted);
    monitor.resume(LONG).unwrap();
    let Err(Error::Superseded { event }) = monitor.interrupt(LONG) else { panic!("not superseded") };
    assert_eq!(event.checkpoints[0].number, 3);
}

#[test]
fn what_vice_would_not_survive_is_never_sent() {
    let scripted = Scripted::start(|_| None);
    let monitor = connect(&scripted);
    for operations in [0, 8] {
        let refused = monitor.set_checkpoint(&NewCheckpoint { operations, ..NEW }, LONG);
        assert!(matches!(refused, Err(Error::Argument(_))));
    }
    let reversed = NewCheckpoint { start: 2, end: 1, ..NEW };
    assert!(matches!(monitor.set_checkpoint(&reversed, LONG), Err(Error::Argument(_))));
    for count in [0, -1, 65_536] {
        assert!(matches!(monitor.step(false, count, LONG), Err(Error::Argument(_))));
    }
    assert!(matches!(monitor.capture(true, false, LONG), Err(Error::OldBuild { .. })));
    assert!(matches!(monitor.set_registers(&[("A".to_owned(), 0x1FF)], 0, LONG), Err(Error::Argument(_))));
    assert!(matches!(monitor.read_memory(RAM, 9, 65_537, LONG), Err(Error::Argument(_))));
    assert_eq!(scripted.commands(), []);
}

#[test]
fn sixty_four_kilobytes_go_in_two_commands_and_a_failing_second_one_is_told() {
    let scripted = answering(0x02, |seen| match seen.body[1..3] {
        [0xFF, 0xFF] => vec![refusal(0x8F, seen.id)],
        _ => vec![usual(seen)],
    });
    let monitor = connect(&scripted);
    let memory = monitor.read_memory(RAM, 0xFFFF, 65_536, LONG).unwrap();
    assert_eq!((memory.bytes.len(), memory.bytes[0xC0FE], memory.next), (65_536, 0xFE, None));
    let error = monitor.write_memory(RAM, &[0; 65_536], LONG).unwrap_err();
    assert!(matches!(error, Error::PartWrite { reached: 0xFFFE, failed: 0xFFFF, end: 0xFFFF, .. }), "{error}");
    assert_eq!(scripted.commands(), [0x01, 0x01, 0x02, 0x02]);
}

#[test]
fn a_step_says_when_it_only_arrived() {
    let scripted = Scripted::start(|_| None);
    let monitor = connect(&scripted);
    monitor.set_registers(&[("PC".to_owned(), 0xC000)], 0, LONG).unwrap();
    assert_eq!(monitor.step(false, 1, LONG).unwrap().arrival, Arrival::OnlyArrived);
    assert_eq!(monitor.step(false, 1, LONG).unwrap().arrival, Arrival::Executed);
    // Revision 46200, which calls itself 3.10, executes.
    let newer = answering(0x85, |seen| vec![encode_response(0x85, 0, seen.id, &[4, 3, 10, 0, 0, 4, 0, 0, 0, 0])]);
    let monitor = connect(&newer);
    monitor.set_registers(&[("PC".to_owned(), 0xC000)], 0, LONG).unwrap();
    assert_eq!(monitor.step(false, 1, LONG).unwrap().arrival, Arrival::Executed);
}

#[test]
fn a_temporary_checkpoint_and_a_reset_leave_a_machine_that_runs() {
    let scripted = Scripted::start(|seen| match seen.command {
        0x12 => Some(vec![[checkpoint(1, true, seen.id), resumed(0xE09A)].concat()]),
        0xCC => Some(vec![[usual(seen), if seen.body == [8] { Vec::new() } else { resumed(0xE09A) }].concat()]),
        0x81 => Some(vec![[stopped(1), usual(seen)].concat()]),
        _ => None,
    });
    let monitor = connect(&scripted);
    assert!(monitor.set_checkpoint(&NewCheckpoint { temporary: true, ..NEW }, LONG).unwrap().resumed);
    assert_eq!(monitor.status().execution, Execution::Running);
    monitor.interrupt(LONG).unwrap();
    monitor.reset(ResetKind::Drive8, LONG).unwrap();
    assert_eq!(monitor.status().execution, Execution::Stopped);
    monitor.reset(ResetKind::Soft, LONG).unwrap();
    assert_eq!(monitor.status().execution, Execution::Running);
    assert!(matches!(monitor.registers(&[], 0, LONG), Err(Error::WrongState { is: Execution::Running, .. })));
}

#[test]
fn both_forms_of_the_display_are_read_and_the_inside_begins_a_line_above() {
    // The head is that of x64sc 3.7.1, whose answer is four bytes short.
    const HEAD: &[u8] = b"\x0d\0\0\0\xf8\x01\x38\x01\x88\0\x33\0\x40\x01\xc8\0\x08\x40\x66\x02\0";
    for missing in [0, 4] {
        let scripted = Scripted::start(move |seen| match seen.command {
            0x84 => {
                let body = [HEAD, &vec![1; 504 * 312 - missing]].concat();
                Some(vec![encode_response(0x84, 0, seen.id, &body)])
            }
            0x91 => Some(vec![encode_response(0x91, 0, seen.id, &[2, 0, 3, 0, 0, 0, 3, 1, 2, 3])]),
            _ => None,
        });
        let monitor = connect(&scripted);
        let picture = monitor.capture(true, true, LONG).unwrap();
        assert_eq!((picture.display.pixels.len(), picture.display.missing), (504 * 312, missing));
        assert_eq!((picture.display.y, picture.inner_y(), picture.palette[1]), (51, 50, [1, 2, 3]));
    }
}

#[test]
fn closing_takes_away_our_checkpoints_and_only_them_also_one_made_too_late() {
    let made = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&made);
    let scripted = Scripted::start(move |seen| match seen.command {
        // The second is made, but nobody hears of it in time.
        0x12 => match count.fetch_add(1, Ordering::SeqCst) {
            0 => Some(vec![checkpoint(2, true, seen.id)]),
            _ => Some(Vec::new()),
        },
        0x31 => Some(vec![[checkpoint(3, true, seen.id - 1), usual(seen)].concat()]),
        0x14 => {
            let all: Vec<u8> = (1..=3).flat_map(|number| checkpoint(number, true, seen.id)).collect();
            Some(vec![[all, encode_response(0x14, 0, seen.id, &[3, 0, 0, 0])].concat()])
        }
        _ => None,
    });
    let monitor = connect(&scripted);
    assert_eq!(monitor.set_checkpoint(&NEW, LONG).unwrap().checkpoint.number, 2);
    assert!(matches!(monitor.set_checkpoint(&NEW, 50), Err(Error::TimedOut { changed: true, .. })));
    monitor.registers(&[], 0, LONG).unwrap();
    monitor.close().unwrap();
    // Two made, the first listed again; then the list, and 2 and 3 deleted.
    assert_eq!(scripted.commands(), [0x12, 0x14, 0x12, 0x31, 0x14, 0x13, 0x13]);
    monitor.close().unwrap();
}

#[test]
fn an_interrupt_gets_through_while_another_call_waits_for_its_stop() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let opened = Arc::clone(&gate);
    let scripted = Scripted::start(move |seen| match seen.command {
        0x73 => {
            *opened.0.lock().unwrap() = true;
            opened.1.notify_all();
            Some(vec![[usual(seen), resumed(0xE09A)].concat()])
        }
        0x81 => Some(vec![[stopped(0x0930), usual(seen)].concat()]),
        _ => None,
    });
    let monitor = Arc::new(connect(&scripted));
    let waiting = Arc::clone(&monitor);
    let finish = std::thread::spawn(move || waiting.finish(LONG));
    let begun = gate.0.lock().unwrap();
    drop(gate.1.wait_while(begun, |begun| !*begun).unwrap());
    let interrupted = loop {
        match monitor.interrupt(LONG) {
            // The machine's resumption is still on its way.
            Err(Error::WrongState { .. }) => std::thread::yield_now(),
            other => break other.unwrap(),
        }
    };
    assert_eq!(finish.join().unwrap().unwrap().event, interrupted.event);
}

#[test]
fn a_monitor_that_never_answers_is_not_waited_for_longer_than_asked() {
    let scripted = Scripted::start(|_| Some(Vec::new()));
    let error = Monitor::connect(scripted.address, Duration::from_millis(100)).unwrap_err();
    assert!(matches!(error, Error::Silent { .. }), "{error}");
    assert!(error.to_string().contains("another client"));
}
