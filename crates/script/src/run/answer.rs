//! Compares the result of a system call with the result that the script expects.

use crate::machine::{Answer, Output};
use crate::syntax::{
    Call, CallEvent, ControlData, ControlMessage, EpollEvent, Expected, OptionValue, Transfer,
};
use linerate_units::Duration;

/// Compares the result of a call with the result that the script expects. Timestamps in control
/// messages may differ by `tolerance`. If the results differ, the error contains a description of
/// the difference, and the actual result as text.
pub(super) fn compare(
    event: &CallEvent,
    answer: &Answer,
    tolerance: Duration,
) -> Result<(), (String, String)> {
    let makes_socket =
        matches!(event.call, Call::Socket { .. } | Call::Accept { .. } | Call::EpollCreate);
    let is_right = match (event.expected, answer.result) {
        (Expected::Anything, _) => true,
        // The call creates a descriptor. Its number is not compared, because a new descriptor gets
        // the number that the script expects, whatever the machine returned.
        (Expected::Value(_), Ok(_)) if makes_socket => true,
        (Expected::Value(expected), Ok(value)) => expected == value,
        (Expected::Error(expected), Err(errno)) => expected == errno,
        (Expected::Value(_), Err(_)) | (Expected::Error(_), Ok(_)) => false,
    };
    if !is_right {
        let actual = match answer.result {
            Ok(value) => format!("it returned {value}"),
            Err(errno) => format!("it returned -1 {errno}"),
        };
        return Err(("the call returned something else".to_owned(), actual));
    }
    compare_output(event, answer, tolerance)
        .map_err(|actual| ("the call returned other data".to_owned(), actual))
}

fn compare_output(event: &CallEvent, answer: &Answer, tolerance: Duration) -> Result<(), String> {
    match (&event.call, &answer.output) {
        (Call::GetOption { value: Some(expected), .. }, Output::Option(value))
            if expected != value =>
        {
            Err(format!("the option is {}", format_option(value)))
        }
        (Call::Ioctl { value: Some(expected), .. }, Output::Number(number))
            if expected != number =>
        {
            Err(format!("it returned {number}"))
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
            match events.iter().zip(expected).find(|(actual, expected)| actual != expected) {
                None => Ok(()),
                Some((EpollEvent { events, data }, _)) => {
                    Err(format!("it returned {{events={events:#x}, fd={data}}}"))
                }
            }
        }
        (Call::Read(transfer), Output::Bytes(bytes)) => compare_data(transfer, bytes),
        (Call::Read(transfer), Output::Message(bytes, control)) => {
            compare_data(transfer, bytes)?;
            compare_control(transfer, control, tolerance)
        }
        _ => Ok(()),
    }
}

fn compare_data(transfer: &Transfer, bytes: &[u8]) -> Result<(), String> {
    match &transfer.data {
        Some(data) if !data.starts_with(bytes) && !bytes.starts_with(data) => {
            Err(format!("it read {:?}", String::from_utf8_lossy(bytes)))
        }
        _ => Ok(()),
    }
}

fn compare_control(
    transfer: &Transfer,
    actual: &[ControlMessage],
    tolerance: Duration,
) -> Result<(), String> {
    let Some(expected) = &transfer.control else { return Ok(()) };
    let is_near = |left: i64, right: i64| left.abs_diff(right) <= tolerance.as_nanos();
    let matches = |(expected, actual): (&ControlMessage, &ControlMessage)| {
        (expected.level, expected.kind) == (actual.level, actual.kind)
            && match (expected.data, actual.data) {
                (ControlData::Time(expected), ControlData::Time(actual)) => {
                    is_near(expected, actual)
                }
                (expected, actual) => expected == actual,
            }
    };
    if expected.len() == actual.len() && expected.iter().zip(actual).all(matches) {
        return Ok(());
    }
    let list: Vec<_> = actual.iter().map(ToString::to_string).collect();
    Err(format!("it read the control messages [{}]", list.join(", ")))
}

fn format_option(value: &OptionValue) -> String {
    match value {
        OptionValue::Number(number) => number.to_string(),
        OptionValue::Linger { on, seconds } => {
            format!("{{onoff={}, linger={seconds}}}", u8::from(*on))
        }
        OptionValue::Text(text) => format!("\"{text}\""),
    }
}
