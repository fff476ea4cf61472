/** The indentation of compiled files, which is a tenth of their size with the four spaces of tsc. */
import { parseSync, Visitor } from 'oxc-parser';

const WIDTH = 4;

/** Indents with tabs. Lines stay lines, for source maps; lines within template literals are text and stay as they are. */
export function withTabs(file: string, source: string): string {
  const texts: { start: number; end: number }[] = [];
  new Visitor({ TemplateElement: ({ start, end }) => void texts.push({ start, end }) }).visit(
    parseSync(file, source).program,
  );
  return source.replace(/^ {4,}/gm, (spaces, at: number) => {
    if (texts.some(({ start, end }) => start <= at && at < end)) return spaces;
    return '\t'.repeat(spaces.length / WIDTH) + ' '.repeat(spaces.length % WIDTH);
  });
}
