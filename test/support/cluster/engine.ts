/** A database with more than one server: the interface for the cluster and a campaign. */
export type Engine = {
  /** The address for chronosd. */
  uri: string;
  /** The current address for reads, with any leader. */
  readUri(): Promise<string>;
  /** Whether the audit's triggers can be put into its tables. */
  takesTriggers: boolean;
  close(): Promise<void>;
};
