import { Readable, Writable } from 'node:stream'
import type { Io } from '../../src/terminal/io.ts'

/** An Io whose streams are in memory: `out` and `err` are what a command has written so far. */
export interface MemoryIo extends Io {
  readonly out: string
  readonly err: string
}

export function memoryIo(stdin = '', settings: Partial<Io> = {}): MemoryIo {
  const out = new Kept()
  const err = new Kept()
  return {
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: out,
    stderr: err,
    env: {},
    columns: 80,
    rows: 24,
    colour: false,
    isTerminal: false,
    ...settings,
    get out() {
      return out.text
    },
    get err() {
      return err.text
    },
  }
}

class Kept extends Writable {
  text = ''

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('utf8')
    done()
  }
}
