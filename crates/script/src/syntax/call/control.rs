//! Control messages of sockets: `{cmsg_level=SOL_TCP, cmsg_type=TCP_CM_INQ, cmsg_data=5}`.

use super::SyntaxError;
use super::arguments::Arguments;
use crate::syntax::value::Value;
use core::fmt;

/// A control message, which is sent or received with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlMessage {
    /// Protocol level, `SOL_…`.
    pub level: i64,
    /// Type of the message at this protocol level.
    pub kind: i64,
    /// Contents of the message.
    pub data: ControlData,
}

/// The contents of a control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlData {
    /// A number, which is an `int` of C.
    Number(i64),
    /// The software timestamp of a `struct scm_timestamping`. It is the time since the start of the
    /// script, in nanoseconds.
    Time(i64),
    /// An entry of a socket's error queue (`struct sock_extended_err`).
    Error(ExtendedError),
}

/// An entry of a socket's error queue (`struct sock_extended_err`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of Linux's structure")]
pub struct ExtendedError {
    pub errno: i64,
    pub origin: i64,
    pub kind: i64,
    pub code: i64,
    pub info: i64,
    pub data: i64,
}

impl Arguments<'_, '_> {
    /// Parses the field `msg_control=[{…}, {…}]` of a message. Returns `None` if the field is
    /// absent.
    pub(super) fn control(
        &self,
        fields: &[Value],
    ) -> Result<Option<Vec<ControlMessage>>, SyntaxError> {
        match Value::field(fields, "msg_control") {
            None | Some(Value::Ignored) => Ok(None),
            Some(Value::List(list)) => {
                let messages: Result<Vec<_>, _> =
                    list.iter().map(|message| self.control_message(message)).collect();
                messages.map(Some)
            }
            Some(_) => Err(self.cursor.error("msg_control is a list of control messages")),
        }
    }

    fn control_message(&self, value: &Value) -> Result<ControlMessage, SyntaxError> {
        let wrong = || {
            self.cursor.error(
                "a control message is written {cmsg_level=SOL_TCP, cmsg_type=TCP_CM_INQ, \
                 cmsg_data=5}",
            )
        };
        let Value::Braces(fields) = value else { return Err(wrong()) };
        let number = |name| Value::field(fields, name).ok_or_else(wrong)?.number(self.cursor);
        let data = match Value::field(fields, "cmsg_data").ok_or_else(wrong)? {
            Value::Braces(fields) => self.structure(fields)?,
            value => ControlData::Number(value.number(self.cursor)?),
        };
        Ok(ControlMessage { level: number("cmsg_level")?, kind: number("cmsg_type")?, data })
    }

    fn structure(&self, fields: &[Value]) -> Result<ControlData, SyntaxError> {
        let field =
            |name| Value::field(fields, name).map(|value| value.number(self.cursor)).transpose();
        if let (Some(seconds), Some(nanos)) = (field("scm_sec")?, field("scm_nsec")?) {
            let nanos = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
            return Ok(ControlData::Time(nanos));
        }
        let wanted = |name| {
            field(name)?.ok_or_else(|| {
                self.cursor.error(
                    "this structure is not known: {scm_sec=0, scm_nsec=0} and {ee_errno=0, \
                     ee_origin=0, ee_type=0, ee_code=0, ee_info=0, ee_data=0} are",
                )
            })
        };
        Ok(ControlData::Error(ExtendedError {
            errno: wanted("ee_errno")?,
            origin: wanted("ee_origin")?,
            kind: wanted("ee_type")?,
            code: wanted("ee_code")?,
            info: wanted("ee_info")?,
            data: wanted("ee_data")?,
        }))
    }
}

impl fmt::Display for ControlMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{cmsg_level={}, cmsg_type={}, cmsg_data=", self.level, self.kind)?;
        match self.data {
            ControlData::Number(number) => write!(f, "{number}}}"),
            ControlData::Time(nanos) => {
                let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
                write!(f, "{{scm_sec={seconds}, scm_nsec={nanos}}}}}")
            }
            ControlData::Error(ExtendedError { errno, origin, kind, code, info, data }) => write!(
                f,
                "{{ee_errno={errno}, ee_origin={origin}, ee_type={kind}, ee_code={code}, \
                 ee_info={info}, ee_data={data}}}}}"
            ),
        }
    }
}
