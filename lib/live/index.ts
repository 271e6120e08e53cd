export {
  asksToFollow,
  asksToWatch,
  defaultTracking,
  instanceOf,
  type LiveAsk,
  type Requirement,
  requirementOf,
  type Tracking,
  trackingOf,
} from './access.ts';
export { BufferSweep } from './buffer-sweep.ts';
export {
  type Channel,
  type ChannelInput,
  type ChannelProtocol,
  channel,
  channelMessage,
  channelProtocols,
  chosenProtocol,
  hasStatus,
  readInput,
  resizeMessage,
  stdinClosed,
  type TerminalSize,
} from './channels.ts';
export { exitStatus, statusOfWords, successStatus, wordsOfStatus } from './exec-status.ts';
export { LogLines, type LogPosition, sinceTimeOf } from './log-lines.ts';
export {
  cancelRequest,
  cancelType,
  impersonatedType,
  isServiceAccount,
  type LogRequest,
  logRequest,
  type RedisRequest,
  type RedisResponse,
  type ResourceRequest,
  type ResourceResponse,
  redisRequest,
  redisResponse,
  resourceRequest,
  resourceResponse,
  type TerminalRequest,
  terminalRequest,
} from './messages.ts';
export { isDiscoveryPath, parseResourcePath, type ResourcePath, resourcePathOf } from './paths.ts';
export {
  bulk,
  CommandReader,
  encodeCommand,
  errorReply,
  noValue,
  pushOf,
  type ReplyPiece,
  ReplySplitter,
  RespError,
} from './resp.ts';
export { statusText } from './status.ts';
