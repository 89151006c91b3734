import { Environment, type ParseResult } from '@marcbachmann/cel-js'
import type { SoftwareNames } from '../classify/known/software-names.ts'
import type { DocumentProblem, Place } from '../shared/problem.ts'
import { type ExpressionFacts, FIELDS, VIEWS } from './expression-facts.ts'
import { at, type ComparedId, ExpressionWalk, type Replacement } from './expression-walk.ts'
import type { PolicyRequest } from './request.ts'
import { resolvedId, type WrittenId } from './written-id.ts'

/** A condition in CEL (the Common Expression Language), compiled. */
export interface Expression {
  /**
   * The facts it uses, like `request.path`. A header is `request.headers.accept`, all headers are
   * `request.headers`.
   */
  readonly asks: ReadonlySet<string>
  /** The most steps it can take. The cost of each is at most linear in the length of the request's head. */
  readonly steps: number
  /** Ids of agents and software that the expression compares with. */
  readonly ids: readonly WrittenId[]
  /** `null`: evaluation had no answer, for example a division by zero. Never throws. */
  evaluate(request: PolicyRequest): boolean | null
}

/** Compiles the expressions of one policy. */
export class ExpressionCompiler {
  /** Created for the first expression, because most policies have no expressions. */
  #environment: Environment | null = null

  /**
   * Checks the names, types and maximum cost of an expression, too. Returns `null` if it is refused. An
   * expression cannot loop without bound, and each step takes time linear in the length of its input.
   * `names`: maps compared ids, names and aliases to ids. `unknownWords`: collects unknown words, which then
   * are equal to nothing; `null`: they are refused.
   */
  compile(
    place: Place,
    names: SoftwareNames | null = null,
    unknownWords: DocumentProblem[] | null = null,
  ): Expression | null {
    this.#environment ??= environment()
    return readExpression(place, names, unknownWords, this.#environment)
  }
}

function readExpression(
  place: Place,
  names: SoftwareNames | null,
  unknownWords: DocumentProblem[] | null,
  by: Environment,
): Expression | null {
  const text = place.text('an expression, like request.method == "POST"', LENGTH_MAX)
  if (text === null) return null
  const parsed = parse(text, by)
  if (typeof parsed === 'string') return place.refuse(parsed)
  const walk = new ExpressionWalk(text)
  const steps = walk.stepsOf(parsed.ast, [])
  for (const problem of walk.problems) place.refuse(problem)
  for (const problem of walk.unknownWords) {
    if (unknownWords === null) place.refuse(problem)
    else unknownWords.push(place.problem(`${problem}; it never matches`))
  }
  if (walk.problems.length > 0 || (unknownWords === null && walk.unknownWords.length > 0)) return null
  if (steps > STEPS_MAX) return place.refuse(`can take ${steps} steps; at most ${STEPS_MAX} are allowed`)
  const { type, error } = parsed.check()
  if (type !== 'bool') return place.refuse(error === undefined ? notBoolean(type) : said(text, error))
  const program = parse(replaced(text, [...walk.replacements, ...idsIn(walk.ids, names)]), by)
  if (typeof program === 'string' || !program.check().valid)
    return place.refuse('is too long, or nested too deeply')
  const ids = walk.ids.map(({ of, name, start }) => ({
    of,
    name,
    problem: (what: string) => place.problem(`${at(text, start)}${what}`),
  }))
  return { asks: walk.asks, steps, ids, evaluate: (request) => answer(program, request.shown) }
}

function answer(program: ParseResult, facts: ExpressionFacts): boolean | null {
  try {
    return program(facts) === true
  } catch {
    return null
  }
}

function parse(text: string, by: Environment): ParseResult | string {
  try {
    return by.parse(text)
  } catch (error) {
    return said(text, error as Error)
  }
}

function notBoolean(type: string | undefined): string {
  return `is of type ${type}; the result must be true or false, so compare it with a value`
}

/** The position of an error and its message. */
function said(text: string, error: Error & { summary?: string; range?: { start: number } }): string {
  const what = error.summary ?? error.message
  return error.range === undefined ? what : `${at(text, error.range.start)}${what}`
}

/** Replaces each name that stands for an id by that id. */
function idsIn(ids: readonly ComparedId[], names: SoftwareNames | null): readonly Replacement[] {
  return ids.flatMap(({ start, end, name }) => {
    const id = resolvedId(name, names)
    return id === name ? [] : [{ start, end, by: JSON.stringify(id) }]
  })
}

/** Replacements never overlap. */
function replaced(text: string, replacements: readonly Replacement[]): string {
  let to = text
  for (const { start, end, by } of replacements.toSorted((a, b) => b.start - a.start))
    to = to.slice(0, start) + by + to.slice(end)
  return to
}

function environment(): Environment {
  const limits = { maxAstNodes: 4 * STEPS_MAX, maxDepth: DEPTH_MAX, maxListElements: LIST_MAX }
  const made = new Environment({ limits })
  for (const [name, fields] of Object.entries(FIELDS)) {
    if (fields === 'bool') made.registerVariable(name, 'bool')
    else {
      const type = `Gatehouse_${name}`
      made.registerType(type, { ctor: VIEWS[name]!, fields: { ...fields } })
      made.registerVariable(name, type)
    }
  }
  return made
}

/** In characters. A longer expression is unreadable. */
const LENGTH_MAX = 2048
/** The cost of each step is at most linear in the length of the request's head. */
const STEPS_MAX = 1000
const DEPTH_MAX = 24
const LIST_MAX = 200
