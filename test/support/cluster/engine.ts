/** A database that is more than one server: what the house and a campaign need of it. */
export type Engine = {
  /** What chronosd is given. */
  uri: string;
  /** Where the database can be read now, whoever leads. */
  readUri(): Promise<string>;
  /** Whether the audit's triggers can be put into its tables. */
  takesTriggers: boolean;
  close(): Promise<void>;
};
