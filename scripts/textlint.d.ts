/** Rules of textlint that come without types. */
declare module 'textlint-rule-sentence-length';
declare module 'textlint-rule-terminology';
