import { useState } from 'preact/hooks'
import { ApiProblem } from './problem.ts'

export interface Doing {
  readonly isDoing: boolean
  /** Why it failed. */
  readonly problem: ApiProblem | null
  /** The problem of this part of the request. */
  errorAt(pointer: string): string | null
  /** One action at a time. */
  run(work: () => Promise<void>): Promise<void>
}

/** An API change for a component. */
export function useDoing(): Doing {
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const [isDoing, setDoing] = useState(false)
  const run = async (work: () => Promise<void>) => {
    if (isDoing) return
    setDoing(true)
    // The problem of the last attempt says nothing about this one.
    setProblem(null)
    try {
      await work()
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error
      setProblem(error)
    } finally {
      setDoing(false)
    }
  }
  const errorAt = (pointer: string) =>
    problem?.errors.find((each) => each.pointer === pointer || each.pointer.startsWith(`${pointer}/`))
      ?.detail ?? null
  return { isDoing, problem, errorAt, run }
}
