import type { Io } from './io.ts'

/** A terminal that is drawn over and over, and is afterwards as it was before. */
export class Screen {
  readonly #io: Io
  readonly #onKey: (data: Buffer) => void

  /** `quit`: somebody types q, or Ctrl-C; `typed`: anything else. */
  constructor(io: Io, quit: () => void, typed: (key: string) => void = () => undefined) {
    this.#io = io
    this.#onKey = (data) => {
      if (data.includes('q') || data.includes(CTRL_C)) quit()
      else for (const key of data.toString('latin1')) typed(key)
    }
    io.stdout.write(ALTERNATE + HIDE_CURSOR)
    const { stdin } = io
    if (!isTerminal(stdin)) return
    stdin.setRawMode(true)
    stdin.on('data', this.#onKey)
  }

  /** In one piece: half a picture is never to be seen. */
  draw(lines: readonly string[]): void {
    this.#takeKeys()
    this.#io.stdout.write(`${HOME}${lines.map((line) => line + CLEAR_RIGHT).join('\r\n')}${CLEAR_BELOW}`)
  }

  /**
   * Anew each time: a process of ours that shares the terminal gives it back, at its end, the mode in which it has found
   * it, and Node thinks that it still has the other one.
   */
  #takeKeys(): void {
    const { stdin } = this.#io
    if (isTerminal(stdin)) stdin.setRawMode(false).setRawMode(true)
  }

  close(): void {
    const { stdin, stdout } = this.#io
    stdout.write(SHOW_CURSOR + ORDINARY)
    if (!isTerminal(stdin)) return
    stdin.off('data', this.#onKey)
    stdin.setRawMode(false)
    stdin.pause()
  }
}

function isTerminal(stdin: Io['stdin']): stdin is typeof process.stdin {
  return 'isTTY' in stdin && stdin.isTTY === true
}

const CTRL_C = '\x03'
const ALTERNATE = '\x1b[?1049h'
const ORDINARY = '\x1b[?1049l'
const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'
const HOME = '\x1b[H'
const CLEAR_RIGHT = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'
