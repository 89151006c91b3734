import { useId, useState } from 'preact/hooks'
import { IN_BROWSER } from '../parts/kept.ts'
import { IS_MAC, LIST_KEY, OFF } from '../shell/keys.ts'
import './go-to.css'
import { useDialog } from './use-dialog.ts'

/** The list of keys. */
export function Keys({ close }: { close(): void }) {
  const dialog = useDialog(close)
  const id = useId()
  const [isOn, setOn] = useState(IN_BROWSER.get(LIST_KEY) !== OFF)
  return (
    <dialog ref={dialog} aria-labelledby={id}>
      <h2 id={id}>Keys</h2>
      <table class="keys">
        <thead>
          <tr>
            <th>Key</th>
            <th>Does</th>
          </tr>
        </thead>
        <tbody>
          {KEYS.map(([keys, about]) => (
            <tr key={about}>
              <td>
                <span>
                  {' '}
                  {keys.map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </span>{' '}
              </td>
              <td>{about}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        <label>
          <input
            type="checkbox"
            checked={isOn}
            onChange={({ currentTarget }) => {
              setOn(currentTarget.checked)
              IN_BROWSER.set(LIST_KEY, currentTarget.checked ? 'on' : OFF)
            }}
          />{' '}
          The key <kbd>?</kbd> shows this list
        </label>
      </p>
      <p class="actions">
        <button type="button" class="main" onClick={() => dialog.current!.close()}>
          Close
        </button>
      </p>
    </dialog>
  )
}

const KEYS: readonly (readonly [keys: readonly string[], about: string])[] = [
  [[IS_MAC ? '⌘ K' : 'Ctrl K'], 'go to a page, setting, app, agent, request or address; also while typing'],
  [['?'], 'this list, not while typing'],
  [['Tab'], 'the next link, button or field; the first of a page skips the navigation'],
  [['↑', '↓', 'PgUp', 'PgDn', 'Home', 'End'], 'through the rows of a long list that has the focus'],
  [['Enter'], 'opens the chosen row'],
  [['Esc'], 'closes a dialog without a change'],
]
