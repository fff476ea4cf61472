/** Prepared statements and their rows. */

/** A prepared statement: each connection parses and plans a name once. */
export type Statement = { readonly name: string; readonly text: string };

/** A statement with its values. */
export type Call = { readonly statement: Statement; readonly values: readonly unknown[] };

/** A row, its values in the order of the statement's columns. */
export type Row = readonly unknown[];

/** @param name unique among all statements of the store */
export function statement(name: string, text: string): Statement {
  return { name: `chronos_${name}`, text };
}
