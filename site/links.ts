/** The links of pages in Markdown: where they lead, and which lead nowhere. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const LINK = /(?<!!)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g;

/** What a heading is reached by, as the places that show repositories make it. */
export function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/<[^>]*>/g, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
}

/** The anchors of a page: a heading that comes again is numbered. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  const plain = text.replace(/^```[\s\S]*?^```/gm, '');
  for (const [, heading] of plain.matchAll(/^#{1,6} (.*)$/gm)) {
    const slug = slugOf(heading!);
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** A link within a repository. */
export type Link = {
  readonly label: string;
  readonly target: string;
  readonly file: string;
  readonly anchor: string | undefined;
};

/**
 * Puts something in the place of each link of a page that leads to a file; code stays as it is.
 *
 * @param page the path of the page
 */
export function replaceLinks(page: string, text: string, instead: (link: Link, whole: string) => string): string {
  const parts = text.split(/(^```[\s\S]*?^```|(?<!\[)`[^`\n]*`)/m);
  const replaced = (part: string) =>
    part.replace(LINK, (whole, label: string, target: string) => {
      if (/^[a-z]+:/.test(target)) return whole;
      const [path = '', anchor] = target.split('#') as [string, string?];
      const file = path === '' ? page : resolve(dirname(page), path);
      return instead({ label, target, file, anchor }, whole);
    });
  return parts.map((part, index) => (index % 2 === 1 ? part : replaced(part))).join('');
}

/** What is wrong with the links of a page, a sentence each. */
export function brokenLinks(root: string, name: string): string[] {
  const page = join(root, name);
  const broken: string[] = [];
  replaceLinks(page, readFileSync(page, 'utf8'), ({ target, file, anchor }, whole) => {
    if (!existsSync(file)) broken.push(`${name}: ${target} leads to nothing`);
    else if (relative(root, file).startsWith('..')) broken.push(`${name}: ${target} leads out of the repository`);
    else if (anchor !== undefined && file.endsWith('.md') && !anchorsOf(readFileSync(file, 'utf8')).has(anchor))
      broken.push(`${name}: ${target} leads to no heading`);
    return whole;
  });
  return broken;
}
