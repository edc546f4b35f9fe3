# The one release of llama.cpp this tree is built and tested with, and the
# sha512 of every archive it comes in. To move to another release change these
# lines, run `make clean setup test golden`, and say so in CHANGELOG.md.

LLAMA_RELEASE=v0.4.0
LLAMA_PACKAGES=3.21.1

# Sources, headers, patches: a git bundle inside this package.
SOURCE_PACKAGE=node-llama-cpp

# integrity_of NAME prints the pinned checksum, nothing for an unknown name.
integrity_of() {
	case $1 in
	node-llama-cpp) echo 'sha512-E3N0Ev2Va0wzydvXYFwM9Hvyo07PoWjt8T/9GMc43Cvt8YkV/NU/tYUgEMC1grTPv2o9PRjQi0G3Wb5P/awiMg==' ;;
	@node-llama-cpp/linux-x64) echo 'sha512-Totj6RTDMGo3FoK2yNUaz/oGmZD0olAqTrRluFUWmu0kW2i9TOzHSW0OWCAiGkzRCVX0WsU2CyUQo/W2NYtdPA==' ;;
	@node-llama-cpp/linux-x64-vulkan) echo 'sha512-flEeSzONQ6OIm5bYKLQf4eEnBzcC5WugFbyPUwkCqyyOFZ8pH0H9ulQ7ZNDLSIczeKneMRJornlyY1Hq7d3GDA==' ;;
	@node-llama-cpp/linux-arm64) echo 'sha512-eI3anSEGzJiwF2rpMpZVTdHzw47LztbvfvuRzlu/fPO18ROnBOd+75RPUBlV6qENPpmNtbov85+3VODwEwBurg==' ;;
	@node-llama-cpp/mac-arm64-metal) echo 'sha512-6MIDAZV7DXD9R1+jEXWJkFuolni3GATGE6mmuyFYc6ZmtOh9djAy15df0T0AXK3sCmVKL+fQcOAWZezxx4MvQQ==' ;;
	@node-llama-cpp/mac-x64) echo 'sha512-Q4nyNmbcNiKygBZQZjX+qLk2w3YzoiFpLWsxNURQN7xjyUi2p2rWxjRa7Otg0FrjGf/ri4aQ+X3Uj5Y0zD06eg==' ;;
	esac
}

# variant_for SYSTEM MACHINE prints the package variant that runs there, as
# `uname -s` and `uname -m` spell the two.
variant_for() {
	case $1-$2 in
	Linux-x86_64 | Linux-amd64) echo linux-x64 ;;
	Linux-aarch64 | Linux-arm64) echo linux-arm64 ;;
	Darwin-arm64) echo mac-arm64-metal ;;
	Darwin-x86_64) echo mac-x64 ;;
	esac
}
