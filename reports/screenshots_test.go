package reports

import "flag"

// screenshots is where the browser test leaves its screenshots.
var screenshots = flag.String("screenshots", "", "folder for the browser test's screenshots")
