/** What was given cannot be compared; the message says why. */
export class CheckoutError extends Error {
  override readonly name = 'CheckoutError';
}
