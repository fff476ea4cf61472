/** Texts that some stores have changed, cut or refused. */

/** JavaScript's `\u{…}` is written out where an editor might normalise the character. */
export const TEXTS: readonly string[] = [
  ' leading and trailing spaces   ',
  'a line that ends in \r\nand one in \rand one in \n',
  'nothing after the NUL?\0something\0',
  '\0',
  'astral: \u{1F998}\u{10FFFF} beyond \u{FFFF}',
  '\u{FEFF}byte order mark',
  'composed \u{E9} and decomposed e\u{301}',
  'controls \u{1}\u{7F}\u{85}\u{2028}\u{2029}',
  `quotes ' " \` \\ %s $1 :name ?1 @x -- /* */ ;`,
  'дом 家 بيت',
  '42',
  '1e3',
  'NULL',
  'x'.repeat(65_536),
];

/** JSON that a parser would write differently. */
export const PAYLOADS: readonly string[] = [
  '{"a":1.0,"b":12345678901234567890,"c":1e400}',
  '{ "spaces" : [ 1 ,2 ] }',
  '{"b":1,"a":2,"10":3,"9":4,"b":5}',
  '"\\u0000 \\u00e9 \\ud83e\\udd98"',
  'null',
  '-0',
  '""',
  `"${'y'.repeat(65_534)}"`,
];
