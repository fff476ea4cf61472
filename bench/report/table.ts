/** Tables, for a terminal and for a page. Pure. */

export type Table = {
  title: string;
  /** The first column is text and left-aligned; the others are figures and right-aligned. */
  headings: readonly string[];
  rows: readonly (readonly string[])[];
  /** A sentence below the table. */
  note?: string;
};

/** Lines for a terminal. */
export function renderText({ title, headings, rows, note }: Table): string[] {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join('  ')
      .trimEnd();
  const body = [line(headings), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)];
  return ['', title, '', ...body.map((text) => `  ${text}`), ...(note === undefined ? [] : ['', `  ${note}`])];
}

const escapePipes = (cell: string) => cell.replaceAll('|', '\\|');

/** Lines of Markdown, without the title. */
export function renderMarkdown({ headings, rows, note }: Table): string[] {
  const line = (cells: readonly string[]) => `| ${cells.map(escapePipes).join(' | ')} |`;
  const rule = `|${headings.map((_, column) => (column === 0 ? ' --- ' : ' ---: ')).join('|')}|`;
  return [line(headings), rule, ...rows.map(line), ...(note === undefined ? [] : ['', note])];
}
