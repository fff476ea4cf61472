/** An argument that the published schema rejects, without an error code. The set of codes is closed, so the protocol's own error is returned. */
export class UnfitArgument extends Error {
  override readonly name = 'UnfitArgument';
}
