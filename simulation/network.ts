import type { AgentMode, Message, PeerConnection, SyncStats } from '../lib/argocd/index.ts';
import { eventOf, messageOf } from '../lib/bridge/index.ts';
import { WireError } from '../lib/wire/index.ts';
import type { SeededDice } from './dice.ts';
import { type Layout, principalNamespace } from './layout.ts';
import type { Machine } from './machine.ts';
import type { VirtualTime } from './virtual-time.ts';

/** An agent's engine as the simulated network sees it. */
export interface AgentProgram {
  connected(connection: PeerConnection, principal: { agent: string; principalNamespace: string }): void;
  disconnected(connection: PeerConnection): void;
  writable(): void;
  acknowledged(message: Message): void;
  receive(message: Message): void;
  stats(): SyncStats;
}

/** The principal's engine as the simulated network sees it. */
export interface PrincipalProgram {
  connected(agent: string, mode: AgentMode, connection: PeerConnection): void;
  disconnected(agent: string, connection: PeerConnection): void;
  writable(agent: string): void;
  acknowledged(agent: string, message: Message): void;
  receive(agent: string, message: Message): void;
  stats(agent: string): SyncStats;
}

type Packet = { readonly is: 'event' | 'ack'; readonly message: Message };

/** What answers an agent that dials. */
export interface Answering {
  readonly program: PrincipalProgram;
  /** Where it runs; undefined: nothing stops it. */
  readonly machine?: Machine;
}

interface Sides {
  readonly agent: AgentProgram;
  readonly principal: Answering;
  readonly name: string;
  readonly mode: AgentMode;
  readonly layout: Layout;
  /** Messages are the bytes of events. */
  readonly asBytes: boolean;
  /** The agent is argocd-agent's. */
  readonly isGo: boolean;
  readonly trace: (line: string) => void;
}

/**
 * One stream between an agent and the principal. Messages about one Application keep their order, as on the wire;
 * different Applications overtake each other, and messages come twice. When it breaks, what is under way is lost.
 */
export class Stream {
  readonly #time: VirtualTime;
  readonly #dice: SeededDice;
  readonly #sides: Sides;
  readonly #toPrincipal: PeerConnection;
  readonly #toAgent: PeerConnection;
  /** Called once when the stream breaks. */
  onBreak: () => void = () => undefined;
  #open = true;
  #refusing = false;

  constructor(time: VirtualTime, dice: SeededDice, sides: Sides) {
    this.#time = time;
    this.#dice = dice;
    this.#sides = sides;
    const { program } = sides.principal;
    this.#toPrincipal = this.#end(
      `${sides.name} -> principal`,
      ({ is, message }) =>
        this.#atPrincipal(() =>
          is === 'ack' ? program.acknowledged(sides.name, message) : program.receive(sides.name, message),
        ),
      (message) => this.#toAgent.acknowledge(message),
    );
    this.#toAgent = this.#end(
      `principal -> ${sides.name}`,
      ({ is, message }) => (is === 'ack' ? sides.agent.acknowledged(message) : sides.agent.receive(message)),
      (message) => this.#toPrincipal.acknowledge(message),
      sides.isGo && sides.mode === 'managed',
    );
    this.#atPrincipal(() => program.connected(sides.name, sides.mode, this.#toAgent));
    sides.agent.connected(this.#toPrincipal, { agent: sides.name, principalNamespace });
  }

  /** Where the principal runs. */
  get machine(): Machine | undefined {
    return this.#sides.principal.machine;
  }

  get open(): boolean {
    return this.#open;
  }

  /**
   * The two ends notice at different times.
   * @param lateMs about how long the principal takes to notice
   */
  break(lateMs = 10): void {
    if (this.#open) {
      this.#open = false;
      this.onBreak();
      this.#time.after(this.#dice.delay(10), () => this.#sides.agent.disconnected(this.#toPrincipal));
      const { program, machine } = this.#sides.principal;
      (machine ?? this.#time).after(this.#dice.delay(lateMs), () =>
        program.disconnected(this.#sides.name, this.#toAgent),
      );
    }
  }

  /** What has arrived at a machine is read when the machine goes on. */
  #atPrincipal(happen: () => void): void {
    const { machine } = this.#sides.principal;
    if (machine === undefined) {
      happen();
    } else {
      machine.after(0, happen);
    }
  }

  /**
   * @param unread called for a message that the peer acknowledges without having understood it
   * @param keepsOrder an event that comes twice does so before later ones, as a stream brings what is sent again. argocd-agent's
   *   managed agent takes an older state for the newer one; ours is to bear it
   */
  #end(
    direction: string,
    deliver: (packet: Packet) => void,
    unread: (message: Message) => void,
    keepsOrder = false,
  ): PeerConnection {
    const arrivals = new Map<string, number>();
    const transmit = (packet: Packet) => {
      if (!this.#open) {
        return;
      }
      const lane = laneOf(packet.message, this.#sides.mode === 'autonomous' ? (name) => name : this.#sides.layout.lane);
      const after = lane === undefined ? Math.max(0, ...arrivals.values()) : arrivals.get(lane);
      const at = Math.max(after ?? 0, this.#time.now() + this.#dice.delay(5));
      arrivals.set(lane ?? '', at);
      const arrive = () => {
        if (this.#open) {
          this.#sides.trace(`${direction}: ${packet.is} ${packet.message.type} ${packet.message.eventId}`);
          deliver(packet);
        }
      };
      this.#time.after(at - this.#time.now(), arrive);
      if (this.#dice.chance(0.03)) {
        const late = this.#dice.delay(50);
        this.#time.after(at - this.#time.now() + (keepsOrder && packet.is === 'event' ? 0 : late), arrive);
      }
    };
    return {
      send: (message) => {
        if (this.#refusing) {
          return false;
        }
        if (this.#dice.chance(0.03)) {
          this.#refuse();
          return false;
        }
        const carried = this.#sides.asBytes ? throughBytes(message) : message;
        if (carried === undefined) {
          this.#sides.trace(`${direction}: unreadable ${message.type} ${message.eventId}`);
          unread(message);
        } else {
          transmit({ is: 'event', message: carried });
        }
        return true;
      },
      acknowledge: (message) => transmit({ is: 'ack', message }),
    };
  }

  /** The buffers are full for a while. */
  #refuse(): void {
    this.#refusing = true;
    this.#time.after(this.#dice.delay(10), () => {
      this.#refusing = false;
      if (this.#open) {
        this.#sides.agent.writable();
        this.#atPrincipal(() => this.#sides.principal.program.writable(this.#sides.name));
      }
    });
  }
}

/** The message as the peer reads it; undefined: it cannot. */
function throughBytes(message: Message): Message | undefined {
  try {
    return messageOf(eventOf(message, 'simulation'));
  } catch (error) {
    if (error instanceof WireError) {
      return undefined;
    }
    throw error;
  }
}

/** The object that a message is about; undefined for one that marks the end of all earlier ones. */
function laneOf(message: Message, lane: Layout['lane']): string | undefined {
  if (message.target === 'resourceResync') {
    if (message.type !== 'request-update') {
      return undefined;
    }
    const { kind, name, namespace = '' } = message.payload;
    return kind === 'Application' ? lane(name, namespace) : `${targetOf[kind]}/${name}`;
  }
  if (message.type === 'error') {
    return lane(message.error.resourceName, message.error.resourceNamespace);
  }
  const { name, namespace = '' } = message.object.metadata;
  return message.target === 'application' ? lane(name, namespace) : `${message.target}/${name}`;
}

const targetOf = { AppProject: 'appproject', Repository: 'repository', GPGKey: 'gpgkey' } as const;
