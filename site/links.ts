/** Links of Markdown pages: their targets, and the broken ones. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const LINK = /(?<!!)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g;

/** The anchor of a heading, by the rules of repository hosts. */
export function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/<[^>]*>/g, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
}

/** The anchors of a page. A repeated heading gets a number. */
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

/** A link within the repository. */
export type Link = {
  readonly label: string;
  readonly target: string;
  readonly file: string;
  readonly anchor: string | undefined;
};

/**
 * Replaces each link of a page that leads to a file. Code stays unchanged.
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

/** The broken links of a page, one sentence each. */
export function brokenLinks(root: string, name: string): string[] {
  const page = join(root, name);
  const broken: string[] = [];
  replaceLinks(page, readFileSync(page, 'utf8'), ({ target, file, anchor }, whole) => {
    if (!existsSync(file)) broken.push(`${name}: the target of ${target} does not exist`);
    else if (relative(root, file).startsWith('..')) broken.push(`${name}: ${target} leads out of the repository`);
    else if (anchor !== undefined && file.endsWith('.md') && !anchorsOf(readFileSync(file, 'utf8')).has(anchor))
      broken.push(`${name}: the heading of ${target} does not exist`);
    return whole;
  });
  return broken;
}
