import type { Io } from './io.ts'

/** A progress bar, on terminals only. */
export class Progress {
  readonly #io: Io
  readonly #shown: boolean
  #drawnAt = 0
  #onScreen = false

  constructor(io: Io) {
    this.#io = io
    this.#shown = 'isTTY' in io.stderr && io.stderr.isTTY === true
  }

  /** `of`: the total, in words. */
  draw(done: number, all: number, of: string): void {
    if (!this.#shown || all === 0) return
    const now = performance.now()
    if (this.#drawnAt === 0) this.#drawnAt = now
    if (now - this.#drawnAt < BETWEEN_MS) return
    this.#drawnAt = now
    this.#onScreen = true
    const share = Math.min(1, done / all)
    const width = Math.max(10, Math.min(40, this.#io.columns - 40))
    const full = Math.round(share * width)
    const bar = `${'█'.repeat(full)}${'░'.repeat(width - full)}`
    this.#io.stderr.write(`\r ${bar} ${Math.floor(share * 100)} % of ${of}${CLEAR_RIGHT}`)
  }

  /** Call it before other output. */
  clear(): void {
    if (this.#onScreen) this.#io.stderr.write(`\r${CLEAR_RIGHT}`)
    this.#onScreen = false
  }
}

const CLEAR_RIGHT = '\x1b[K'
const BETWEEN_MS = 100
