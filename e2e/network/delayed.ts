import { Transform } from 'node:stream';

/** The state of one direction of a connection, asked for each piece. */
export interface DirectionState {
  /** How long a piece is under way. */
  delayMs(): number;
  /** Pieces do not arrive any more. */
  isLost(): boolean;
}

const mostUnderWay = 1_024;

/** Passes pieces on in their order, each `delayMs` after it came, many under way at once; swallows them when they are lost. */
export function delayed(way: DirectionState): Transform {
  const underWay: Buffer[] = [];
  let goOn: (() => void) | undefined;
  let ended: (() => void) | undefined;
  return new Transform({
    transform(piece: Buffer, _encoding, done) {
      const arrive = () => {
        const first = underWay.shift();
        if (first !== undefined && !way.isLost()) {
          this.push(first);
        }
        const next = goOn;
        goOn = undefined;
        next?.();
        if (underWay.length === 0) {
          ended?.();
        }
      };
      const delay = way.delayMs();
      underWay.push(piece);
      if (delay === 0 && underWay.length === 1) {
        arrive();
      } else {
        setTimeout(arrive, delay);
      }
      if (underWay.length < mostUnderWay) {
        done();
      } else {
        goOn = done;
      }
    },
    flush(done) {
      if (underWay.length === 0) {
        done();
      } else {
        ended = done;
      }
    },
  });
}
