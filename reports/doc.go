// Package reports turns stored records into pages: markdown, HTML, plots as SVG
// and PNG, CSV. It is pure: records in, bytes out. The same records give the
// same bytes, so a page can be kept in version control and checked.
//
// A page is built once as a Document and rendered by each format, so that the
// formats cannot say different things. Undecided, void and refuted findings
// stand beside the wins, and on a page of their own.
package reports
