/** Why a tool cannot be had, with what to do about it in the message. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
  readonly code: 'GoMissing' | 'GoTooOld' | 'BuildFailed';

  constructor(code: ToolError['code'], message: string) {
    super(message);
    this.code = code;
  }
}
