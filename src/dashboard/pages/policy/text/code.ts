import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  completionKeymap,
  pickedCompletion,
  startCompletion,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, indentUnit } from '@codemirror/language'
import { lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint'
import { search, searchKeymap } from '@codemirror/search'
import { Compartment, type EditorState, Transaction } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { LOOK } from './look.ts'
import { offersAt } from './complete.ts'
import { summaryOf, type TextProblem } from './problems.ts'

export interface CodeOptions {
  readonly host: HTMLElement
  readonly text: string
  /** For screen readers. */
  readonly label: string
  readonly isOfApp: boolean
  changed(text: string): void
  /** Ids that contain this text, with what they stand for. */
  ids(like: string, signal: AbortSignal): Promise<readonly (readonly [id: string, about: string])[]>
}

/** An editor of YAML on the page. */
export interface Code {
  /** Keeps the caret and what can be undone. */
  set(text: string): void
  show(problems: readonly TextProblem[]): void
  focus(from: number, to: number): void
  close(): void
}

/**
 * The page forbids style elements. CodeMirror makes none in a shadow root: its rules are a style sheet object
 * there. Colours are inherited from the page.
 */
export function openCode({ host, text, label, isOfApp, changed, ids }: CodeOptions): Code {
  const around = host.appendChild(document.createElement('div'))
  const root = around.attachShadow({ mode: 'open' })
  const described = new Compartment()
  const attributes = (problem: string | null) =>
    EditorView.contentAttributes.of({
      ...{ 'aria-label': label, 'aria-invalid': String(problem !== null) },
      ...(problem !== null && { 'aria-description': problem }),
    })
  const view = new EditorView({
    ...{ doc: text, root, parent: root },
    extensions: [
      ...[
        lineNumbers(),
        lintGutter(),
        history(),
        search({ top: true }),
        bracketMatching(),
        yaml(),
        indentUnit.of('  '),
      ],
      autocompletion({ override: [(context) => complete(context, isOfApp, ids)], icons: false }),
      keymap.of([
        ...[...completionKeymap, ...searchKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap],
        // Not after Escape.
        indentWithTab,
      ]),
      // Also where Escape closes a list of completions.
      EditorView.domEventObservers({
        keydown: ({ key }, view) => {
          if (key === 'Escape') view.setTabFocusMode(TAB_LEAVES_MS)
        },
      }),
      EditorView.domEventHandlers({ beforeinput: typedOverLines }),
      EditorView.lineWrapping,
      described.of(attributes(null)),
      LOOK,
      EditorView.updateListener.of(({ docChanged, state, transactions }) => {
        if (docChanged && !transactions.every(isFromPage)) changed(state.doc.toString())
      }),
    ],
  })
  return {
    set: (next) => setText(view, next),
    show(problems) {
      const { state } = view
      view.dispatch(
        setDiagnostics(
          state,
          problems.map((each) => diagnosticOf(state, each)),
        ),
      )
      const error = summaryOf(problems.filter(({ severity }) => severity === 'error'))
      view.dispatch({ effects: described.reconfigure(attributes(error)) })
    },
    focus(from, to) {
      view.focus()
      view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true })
    },
    close() {
      view.destroy()
      around.remove()
    },
  }
}

/** Replaces only what differs. */
function setText(view: EditorView, next: string): void {
  const before = view.state.doc.toString()
  if (before === next) return
  const shared = Math.min(before.length, next.length)
  let from = 0
  while (from < shared && before[from] === next[from]) from++
  let kept = 0
  while (kept < shared - from && before.at(-1 - kept) === next.at(-1 - kept)) kept++
  view.dispatch({
    changes: { from, to: before.length - kept, insert: next.slice(from, next.length - kept) },
    annotations: Transaction.userEvent.of(FROM_PAGE),
  })
}

/**
 * Chromium joins the lines that a letter replaces, and gives what it joins a style attribute, which the page
 * forbids.
 */
function typedOverLines({ inputType, data, isComposing }: InputEvent, view: EditorView): boolean {
  const { from, to } = view.state.selection.main
  if (inputType !== 'insertText' || data === null || isComposing) return false
  if (view.state.doc.lineAt(from).to >= to) return false
  view.dispatch({ ...view.state.replaceSelection(data), userEvent: 'input.type', scrollIntoView: true })
  return true
}

function isFromPage(transaction: Transaction): boolean {
  return !transaction.docChanged || transaction.isUserEvent(FROM_PAGE)
}

/** Marks the line, without the space before its text. */
function diagnosticOf({ doc }: EditorState, { line, severity, text }: TextProblem) {
  const { from, to, text: written } = doc.line(Math.min(line ?? 1, doc.lines))
  return { from: from + written.search(/\S|$/), to, severity, message: text }
}

async function complete(
  context: CompletionContext,
  isOfApp: boolean,
  ids: CodeOptions['ids'],
): Promise<CompletionResult | null> {
  const found = offersAt(context.state.doc.toString(), context.pos, isOfApp)
  // Enter after an empty word is to begin a line.
  if (found === null || (found.from === context.pos && !context.explicit)) return null
  const { from, offers, idsLike, writtenId } = found
  const options = offers.map(({ word, about, kind, text }): Completion => {
    const type = kind === 'key' ? 'property' : 'constant'
    return { label: word, type, ...(about !== '' && { info: about }), apply: inserting(text, kind === 'key') }
  })
  if (idsLike === null) return { from, options, validFor: /^[\w-]*$/ }
  const gone = new AbortController()
  context.addEventListener('abort', () => gone.abort())
  const agents = await ids(idsLike, gone.signal).catch(() => [])
  for (const [id, about] of agents)
    options.push({ label: id, detail: about, type: 'constant', apply: inserting(writtenId(id), false) })
  // The server has searched, also in names.
  return { from, options, filter: false }
}

/** `isKey`: then its values are offered. */
function inserting(text: string, isKey: boolean) {
  return (view: EditorView, completion: Completion, from: number, to: number) => {
    view.dispatch({
      changes: { from, to, insert: text },
      selection: { anchor: from + text.length },
      annotations: [pickedCompletion.of(completion), Transaction.userEvent.of('input.complete')],
      scrollIntoView: true,
    })
    if (isKey) startCompletion(view)
  }
}

const FROM_PAGE = 'policy.set'
/** As in CodeMirror. */
const TAB_LEAVES_MS = 2_000
