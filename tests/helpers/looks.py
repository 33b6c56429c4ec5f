"""What readers of a page in Chromium stumble over: text that is cut or pale, pictures and fields without names."""

from chromium import Page

# Contrast as the guidelines for accessible pages (WCAG 2) define it: 4.5 for text, or 3 if it is large.
SCRIPT = r"""(() => {
  const faults = [];
  const wide = document.documentElement.clientWidth;
  const named = (node) => `${node.tagName.toLowerCase()} ${node.id} ${node.textContent.trim().slice(0, 40)}`;
  const shown = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getBoundingClientRect().width > 1;
  const style = (node) => getComputedStyle(node);
  function* parents(node) { for (let one = node; one; one = one.parentElement) yield one; }

  const needed = document.documentElement.scrollWidth;
  if (needed > wide) faults.push(`the page is ${needed} wide`);
  for (const node of document.querySelectorAll("main *, header *")) {
    if (!shown(node) || node.closest("svg *")) continue;
    const scrolls = [...parents(node.parentElement)].some((one) => style(one).overflowX !== "visible");
    if (!scrolls && node.getBoundingClientRect().right > wide + 1) faults.push(`beyond the screen: ${named(node)}`);
  }

  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const paint = (colours) => { // the colour that the reader sees
    for (const colour of colours) {
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
    }
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (colour) => colour.map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !shown(node)) continue;
    if (node.closest("svg, script, style, :disabled, label:has(:disabled)")) continue;
    const ground = ["Canvas", ...[...parents(node)].reverse().map((one) => style(one).backgroundColor)];
    const [low, high] = [paint(ground), paint([...ground, style(node).color])].map(luminance).sort((a, b) => a - b);
    const size = parseFloat(style(node).fontSize);
    const large = size >= 24 || (size >= 18.6 && style(node).fontWeight >= 700);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < (large ? 3 : 4.5)) faults.push(`contrast ${contrast.toFixed(1)}: ${named(node)}`);
  }

  for (const image of document.images) {
    if (!image.naturalWidth) faults.push(`no picture: ${image.src}`);
    if (!image.alt && !image.closest("a, [tooltip]")) faults.push(`no description: ${image.src}`);
  }
  for (const field of document.querySelectorAll("input, select, textarea, button")) {
    const name = field.ariaLabel || field.labels?.[0]?.textContent || field.textContent || field.title;
    if (shown(field) && !name.trim()) faults.push(`no name: ${field.outerHTML.slice(0, 80)}`);
  }
  let level = 0;
  for (const heading of document.querySelectorAll("main h1, main h2, main h3, main h4, header h1")) {
    if (!shown(heading)) continue;
    if (Number(heading.tagName[1]) > level + 1) faults.push(`a level is left out: ${named(heading)}`);
    level = Number(heading.tagName[1]);
  }
  return faults;
})()"""


def faults(page: Page) -> list[str]:
    """What is wrong with the open page."""
    found: list[str] = page.run(SCRIPT)
    return found
