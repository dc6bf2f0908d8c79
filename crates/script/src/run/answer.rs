//! Did a call come to what the script says?

use crate::machine::{Answer, Output};
use crate::syntax::{
    Call, CallEvent, ControlData, ControlMessage, EpollEvent, Expected, OptionValue, Transfer,
};
use linerate_units::Duration;

/// Judges an answer; what is wrong with it, and what came, if anything is.
pub(super) fn judge(
    event: &CallEvent,
    answer: &Answer,
    tolerance: Duration,
) -> Result<(), (String, String)> {
    let makes_socket =
        matches!(event.call, Call::Socket { .. } | Call::Accept { .. } | Call::EpollCreate);
    let is_right = match (event.expected, answer.result) {
        (Expected::Anything, _) => true,
        // The number of a socket is the script's own.
        (Expected::Value(_), Ok(_)) if makes_socket => true,
        (Expected::Value(expected), Ok(value)) => expected == value,
        (Expected::Error(expected), Err(errno)) => expected == errno,
        (Expected::Value(_), Err(_)) | (Expected::Error(_), Ok(_)) => false,
    };
    if !is_right {
        let came = match answer.result {
            Ok(value) => format!("it returned {value}"),
            Err(errno) => format!("it returned -1 {errno}"),
        };
        return Err(("the call returned something else".to_owned(), came));
    }
    judge_output(event, answer, tolerance)
        .map_err(|came| ("the call told something else".to_owned(), came))
}

fn judge_output(event: &CallEvent, answer: &Answer, tolerance: Duration) -> Result<(), String> {
    match (&event.call, &answer.output) {
        (Call::GetOption { value: Some(expected), .. }, Output::Option(value))
            if expected != value =>
        {
            Err(format!("the option is {}", told(value)))
        }
        (Call::Ioctl { value: Some(expected), .. }, Output::Number(number))
            if expected != number =>
        {
            Err(format!("it told {number}"))
        }
        (Call::Poll { entries, .. }, Output::Events(events)) => {
            match entries.iter().zip(events).find(|(entry, events)| entry.revents != **events) {
                None => Ok(()),
                Some((entry, events)) => {
                    Err(format!("socket {} has revents {events:#x}", entry.fd))
                }
            }
        }
        (Call::EpollWait { expected: Some(expected), .. }, Output::Epoll(events)) => {
            match events.iter().zip(expected).find(|(came, expected)| came != expected) {
                None => Ok(()),
                Some((EpollEvent { events, data }, _)) => {
                    Err(format!("it returned {{events={events:#x}, fd={data}}}"))
                }
            }
        }
        (Call::Read(transfer), Output::Bytes(bytes)) => judge_data(transfer, bytes),
        (Call::Read(transfer), Output::Message(bytes, control)) => {
            judge_data(transfer, bytes)?;
            judge_control(transfer, control, tolerance)
        }
        _ => Ok(()),
    }
}

fn judge_data(transfer: &Transfer, bytes: &[u8]) -> Result<(), String> {
    match &transfer.data {
        Some(data) if !data.starts_with(bytes) && !bytes.starts_with(data) => {
            Err(format!("it read {:?}", String::from_utf8_lossy(bytes)))
        }
        _ => Ok(()),
    }
}

fn judge_control(
    transfer: &Transfer,
    came: &[ControlMessage],
    tolerance: Duration,
) -> Result<(), String> {
    let Some(expected) = &transfer.control else { return Ok(()) };
    let is_near = |left: i64, right: i64| left.abs_diff(right) <= tolerance.as_nanos();
    let matches = |(expected, came): (&ControlMessage, &ControlMessage)| {
        (expected.level, expected.kind) == (came.level, came.kind)
            && match (expected.data, came.data) {
                (ControlData::Time(expected), ControlData::Time(came)) => is_near(expected, came),
                (expected, came) => expected == came,
            }
    };
    if expected.len() == came.len() && expected.iter().zip(came).all(matches) {
        return Ok(());
    }
    let list: Vec<_> = came.iter().map(ToString::to_string).collect();
    Err(format!("it read the control messages [{}]", list.join(", ")))
}

fn told(value: &OptionValue) -> String {
    match value {
        OptionValue::Number(number) => number.to_string(),
        OptionValue::Linger { on, seconds } => {
            format!("{{onoff={}, linger={seconds}}}", u8::from(*on))
        }
        OptionValue::Text(text) => format!("\"{text}\""),
    }
}
