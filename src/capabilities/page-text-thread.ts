/** The thread that `page-text.ts` starts: turns the HTML of one page into text. */
import { parentPort, workerData } from 'node:worker_threads';
import { convert } from 'html-to-text';
import { Parser } from 'htmlparser2';
import type { PageSource, PageText } from './page-text.ts';

/**
 * Maximum depth of elements. The parser's time grows with the depth of every element, so the page is read up to this
 * depth.
 */
const DEPTH_MAX = 512;
/** The text of deeper elements is omitted. */
const SHOWN_DEPTH = 200;
const SKIPPED = ['img', 'script', 'style', 'noscript', 'template', 'svg', 'iframe', 'nav', 'form', 'head'];
/** Characters that are parsed between checks of the depth. */
const CHUNK_CHARACTERS = 16 * 1024;

/**
 * Length of the readable part of a page: up to the first element that is too deep. The conversion uses the same parser,
 * so both close elements alike.
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
  // Parse in chunks: after the limit, each element would take time that grows with the depth.
  for (let at = 0; at < html.length && end === undefined; at += CHUNK_CHARACTERS)
    parser.write(html.slice(at, at + CHUNK_CHARACTERS));
  return end ?? html.length;
}

function textOf({ html, base }: PageSource): string {
  // Resolve links here: the library would only prepend the page's address.
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
const remark = `[The rest of the page is omitted: it has more than ${DEPTH_MAX} nested elements; raw: true returns its source.]`;
const answer: PageText = { text: length < source.html.length ? `${text}\n\n${remark}`.trimStart() : text };
parentPort!.postMessage(answer);
