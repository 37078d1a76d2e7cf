# Totals of sales.csv by region and by month. Run: sh totals.sh
export LC_ALL=C

add_up() {
    awk -F, -v column="$1" -v width="$2" '
        NR > 1 {
            name = substr($column, 1, width)
            if (name == "") name = "(none)"
            sum[name] += $7
        }
        END { for (name in sum) printf "%-8s %9.2f\n", name, sum[name] }
    ' sales.csv | sort
}

echo "By region"
add_up 3 99
echo "By month"
add_up 1 7
