//! HTML elements that several sections of the page use.

use crate::xml::escaped;

/// Returns a table with a caption. The first value of each row is a row header.
pub(crate) fn table(caption: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let head: String =
        head.iter().map(|name| format!("<th scope=\"col\">{}</th>", escaped(name))).collect();
    let rows: String = rows.iter().map(|row| table_row(row)).collect();
    let caption = escaped(caption);
    format!(
        "<div class=\"wide\" role=\"region\" aria-label=\"{caption}\" \
         tabindex=\"0\"><table><caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>{rows}</tbody></table></div>\n"
    )
}

fn table_row(row: &[String]) -> String {
    let cells = row.iter().enumerate().map(|(index, value)| {
        let value = escaped(value);
        if index == 0 {
            format!("<th scope=\"row\">{value}</th>")
        } else {
            format!("<td>{value}</td>")
        }
    });
    format!("<tr>{}</tr>\n", cells.collect::<String>())
}

/// Returns content that is hidden until the reader opens it by a click on `summary`.
pub(crate) fn details(summary: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>\n{content}</details>\n", escaped(summary))
}

/// Returns a legend that explains the lines of a chart. Each entry has the style class and the name
/// of a line.
pub(crate) fn legend(entries: &[(&str, String)]) -> String {
    let swatch =
        |class: &str| format!("<g class=\"{class}\"><path class=\"line\" d=\"M0 6L28 6\"/></g>");
    let entries = entries.iter().map(|(class, name)| entry(&swatch(class), name));
    format!("<ul class=\"legend\">{}</ul>\n", entries.collect::<String>())
}

/// Returns a legend that explains the marks of a chart. Each entry has the style class and the name
/// of a kind of mark.
pub(crate) fn marks_legend(entries: &[(&str, &str)]) -> String {
    let swatch = |class: &str| format!("<path class=\"dots {class}\" d=\"M8 6h0M20 6h0\"/>");
    let entries = entries.iter().map(|(class, name)| entry(&swatch(class), name));
    format!("<ul class=\"legend\">{}</ul>\n", entries.collect::<String>())
}

fn entry(swatch: &str, name: &str) -> String {
    format!(
        "<li><svg class=\"swatch\" viewBox=\"0 0 28 12\" \
         aria-hidden=\"true\">{swatch}</svg>{}</li>",
        escaped(name)
    )
}

/// Returns a section of the page. `id` becomes the identifier of its heading, to which links refer.
pub(crate) fn section(id: &str, heading: &str, content: &str) -> String {
    format!(
        "<section aria-labelledby=\"{id}\"><h2 id=\"{id}\">{}</h2>\n{content}</section>\n",
        escaped(heading)
    )
}

/// Returns a paragraph of escaped text.
pub(crate) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escaped(text))
}
