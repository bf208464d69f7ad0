#!/bin/sh
# What the conformance suite runs as a client: the address of its server is the last argument.
set -e
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
for url; do :; done
printf '[mcp.servers.it]\nurl = "%s"\n' "$url" > wiggum.toml
case "$MCP_CONFORMANCE_SCENARIO" in
tools_call) "$WIGGUM" mcp call it add_numbers a=5 b=3 ;;
sse-retry) "$WIGGUM" mcp call it test_reconnection ;;
*) "$WIGGUM" mcp tools it ;;
esac
