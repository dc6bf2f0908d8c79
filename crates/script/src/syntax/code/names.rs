//! The constants of Linux's <linux/tcp.h> that assertions may use.

const NAMES: [(&str, f64); 32] = [
    ("True", 1.0),
    ("False", 0.0),
    ("None", 0.0),
    ("TCP_ESTABLISHED", 1.0),
    ("TCP_SYN_SENT", 2.0),
    ("TCP_SYN_RECV", 3.0),
    ("TCP_FIN_WAIT1", 4.0),
    ("TCP_FIN_WAIT2", 5.0),
    ("TCP_TIME_WAIT", 6.0),
    ("TCP_CLOSE", 7.0),
    ("TCP_CLOSE_WAIT", 8.0),
    ("TCP_LAST_ACK", 9.0),
    ("TCP_LISTEN", 10.0),
    ("TCP_CLOSING", 11.0),
    ("TCP_NEW_SYN_RECV", 12.0),
    ("TCP_CA_Open", 0.0),
    ("TCP_CA_Disorder", 1.0),
    ("TCP_CA_CWR", 2.0),
    ("TCP_CA_Recovery", 3.0),
    ("TCP_CA_Loss", 4.0),
    ("TCPI_OPT_TIMESTAMPS", 1.0),
    ("TCPI_OPT_SACK", 2.0),
    ("TCPI_OPT_WSCALE", 4.0),
    ("TCPI_OPT_ECN", 8.0),
    ("TCPI_OPT_ECN_SEEN", 16.0),
    ("TCPI_OPT_SYN_DATA", 32.0),
    ("TCPI_OPT_USEC_TS", 64.0),
    ("TCPI_OPT_TFO_CHILD", 128.0),
    // Values of the field `tcpi_fastopen_client_fail`.
    ("TFO_STATUS_UNSPEC", 0.0),
    ("TFO_COOKIE_UNAVAILABLE", 1.0),
    ("TFO_DATA_NOT_ACKED", 2.0),
    ("TFO_SYN_RETRANSMITTED", 3.0),
];

/// Returns the value of the constant `name`; `None` if there is no such constant.
pub(super) fn value(name: &str) -> Option<f64> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}
