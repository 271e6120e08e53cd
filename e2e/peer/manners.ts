/** How a peer delivers what it says, over one connection after the other. */
export interface EventWriter<E> {
  /** Whether everything was sent and acknowledged. */
  readonly isIdle: boolean;
  /** What was sent and is not acknowledged. */
  readonly unacknowledged: readonly E[];
  /** Queues an event; acknowledgements too. */
  add(event: E): void;
  /** Takes an acknowledgement. False: nothing was waiting for it. */
  remove(acknowledgement: E): boolean;
  /** Sends over a (new) stream from now on. */
  start(send: (event: E) => void): void;
  /** Sends nothing until the next `start`. Nothing is forgotten. */
  stop(): void;
}

/** What a peer does with what comes. */
export interface Manners<E> {
  /** Whether it takes note of an event at all. Default: of each. */
  hears?(event: E): boolean;
  /** Takes an event; the reason if it is refused. It is acknowledged all the same. */
  handle?(event: E): string | undefined;
  /** The acknowledgement of an event. */
  acknowledge(event: E): E;
  /** An acknowledgement came that nothing of the writer's waits for. */
  stray?(acknowledgement: E): void;
}

/** The parts of events that every peer looks at. */
export interface EventReader<E> {
  targetOf(event: E): string;
  /** For a line of the story. */
  describe(event: E): string;
}
