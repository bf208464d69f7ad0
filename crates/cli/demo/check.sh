# The checks of the demo: `sh check.sh greet` and so on.
set -e
expect() {
    actual=$(sh "$1.sh" Ralph)
    if [ "$actual" != "$2" ]; then
        echo "$1.sh Ralph"
        echo "  expected: $2"
        echo "  actual:   $actual"
        exit 1
    fi
    echo "$1.sh Ralph: $actual"
}
case "$1" in
    greet) expect greet "Hello, Ralph!" ;;
    farewell) expect farewell "Goodbye, Ralph!" ;;
    *) for script in ./*.sh; do sh -n "$script"; done; echo "all scripts parse" ;;
esac
