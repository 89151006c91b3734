import type { Io } from './io.ts'

/** A terminal that is redrawn continuously and restored at the end. */
export class Screen {
  readonly #io: Io
  readonly #onKey: (data: Buffer) => void

  /** `quit`: called for q or Ctrl-C; `typed`: called for other keys. */
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

  /** Writes the picture in one piece, so that no half picture is visible. */
  draw(lines: readonly string[]): void {
    this.#takeKeys()
    this.#io.stdout.write(`${HOME}${lines.map((line) => line + CLEAR_RIGHT).join('\r\n')}${CLEAR_BELOW}`)
  }

  /**
   * Sets raw mode again each time: a child process that shares the terminal resets the mode when it ends,
   * while Node believes that raw mode is still on.
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
