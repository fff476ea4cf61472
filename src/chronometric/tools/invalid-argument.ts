/** An argument that the published schema rejects. The set of error codes is closed, so the result is the protocol's own error. */
export class InvalidArgument extends Error {
  override readonly name = 'InvalidArgument';
}
