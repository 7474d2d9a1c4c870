"""Draws times, or another quantity, over sizes, both logarithmic, as an SVG."""
import argparse
import math

WIDTH, HEIGHT = 840, 470
LEFT, RIGHT, TOP, BOTTOM = 70, 270, 20, 50
TIMES = {0: "1 µs", 1: "10 µs", 2: "0.1 ms", 3: "1 ms", 4: "10 ms", 5: "0.1 s", 6: "1 s", 7: "10 s"}


def draw(lines, ticks, x_label, marks=TIMES):
    """The SVG of lines, (label, colour, dashes, {log of size: microseconds}), with ticks, {log of size: words}, and
    marks, {log10 of the quantity: words}."""
    times = [math.log10(t) for *_, line in lines for t in line.values()]
    sizes = [n for *_, line in lines for n in line]
    low_n, high_n = min(sizes), max(sizes)
    low_t, high_t = math.floor(min(times)), math.ceil(max(times))

    def x(n):
        return LEFT + (n - low_n) / (high_n - low_n) * (WIDTH - LEFT - RIGHT)

    def y(log_t):
        return HEIGHT - BOTTOM - (log_t - low_t) / (high_t - low_t) * (HEIGHT - TOP - BOTTOM)

    def text(at_x, at_y, words, anchor="middle"):
        return f'<text x="{at_x:.0f}" y="{at_y:.0f}" text-anchor="{anchor}">{words}</text>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for n, words in ticks.items():
        out.append(f'<path d="M{x(n):.0f} {TOP}V{HEIGHT - BOTTOM}" stroke="#dddddd"/>')
        out.append(text(x(n), HEIGHT - BOTTOM + 18, words))
    for log_t in range(low_t, high_t + 1):
        out.append(f'<path d="M{LEFT} {y(log_t):.0f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        out.append(text(LEFT - 6, y(log_t) + 4, marks.get(log_t, ""), "end"))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label))
    at = TOP + 10
    for label, colour, dashes, line in lines:
        path = "L".join(f"{x(n):.1f} {y(math.log10(t)):.1f}" for n, t in sorted(line.items()))
        style = f'stroke="{colour}" stroke-width="2" fill="none" stroke-dasharray="{dashes}"'
        out.append(f'<path d="M{path}" {style}/>')
        out.append(f'<path d="M{WIDTH - RIGHT + 10} {at - 4}h30" {style}/>')
        out.append(text(WIDTH - RIGHT + 46, at, label, "start"))
        at += 20
    return "\n".join(out + ["</svg>", ""])


def main(description, draw_files):
    """The command line of a script: writes draw_files(paths of JSON files) to an SVG."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="JSON files of cumulus_bench")
    parser.add_argument("-o", "--output", required=True, help="SVG to write")
    arguments = parser.parse_args()
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(draw_files(arguments.results))
