/** The thread that `page-text.ts` starts: turns the HTML of one page into text. */
import { parentPort, workerData } from 'node:worker_threads';
import { convert } from 'html-to-text';
import { Parser } from 'htmlparser2';
import type { PageSource, PageText } from './page-text.ts';

/** Elements in one another. The parser's time grows with the depth of every element, so a page is read up to there. */
const DEPTH_MAX = 512;
/** The text of deeper elements is left out. */
const SHOWN_DEPTH = 200;
const SKIPPED = ['img', 'script', 'style', 'noscript', 'template', 'svg', 'iframe', 'nav', 'form', 'head'];
/** Characters that are parsed before the depth is looked at again. */
const PIECE = 16 * 1024;

/**
 * How far a page can be read: up to the first element that is too deep. The parser is that of the conversion, so what
 * closes an element is the same.
 */
function readableLength(html: string): number {
  let depth = 0;
  let end: number | undefined;
  const parser = new Parser({
    onopentag() {
      if (++depth > DEPTH_MAX) end ??= parser.startIndex;
    },
    onclosetag: () => void depth--,
  });
  // By pieces: behind the end, each element would take time that grows with the depth.
  for (let at = 0; at < html.length && end === undefined; at += PIECE) parser.write(html.slice(at, at + PIECE));
  return end ?? html.length;
}

function textOf({ html, base }: PageSource): string {
  // The library would only put the page's address in front.
  const pathRewrite = (path: string) => URL.parse(path, base)?.href ?? path;
  const text = convert(html, {
    wordwrap: false,
    limits: { maxDepth: SHOWN_DEPTH, maxInputLength: html.length },
    selectors: [
      { selector: 'a', options: { pathRewrite, hideLinkHrefIfSameAsText: true } },
      ...SKIPPED.map((selector) => ({ selector, format: 'skip' })),
    ],
  });
  return text.trim();
}

const source = workerData as PageSource;
const length = readableLength(source.html);
const text = textOf({ ...source, html: source.html.slice(0, length) });
const remark = `[The rest of the page is left out: it has more than ${DEPTH_MAX} elements in one another; raw: true gives its source.]`;
const answer: PageText = { text: length < source.html.length ? `${text}\n\n${remark}`.trimStart() : text };
parentPort!.postMessage(answer);
