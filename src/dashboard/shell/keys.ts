import { useEffect } from 'preact/hooks'
import { IN_BROWSER } from '../parts/kept.ts'

/** A dialog that every page has. */
export type ShellDialog = 'go-to' | 'keys'

/** Opens the dialogs by their keys. A dialog that is open gets all keys for itself. */
export function useKeys(open: (tool: ShellDialog) => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const tool = toolOf(event)
      if (tool === null) return
      event.preventDefault()
      if (document.querySelector('dialog[open]') === null) open(tool)
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [open])
}

function toolOf(event: KeyboardEvent): ShellDialog | null {
  const { key, ctrlKey, metaKey, altKey, shiftKey } = event
  if (altKey || event.isComposing || event.defaultPrevented) return null
  // On a Mac, Control and K deletes text in a field.
  const [modifier, other] = IS_MAC ? [metaKey, ctrlKey] : [ctrlKey, metaKey]
  if (modifier && !other && !shiftKey && key.toLowerCase() === 'k') return 'go-to'
  if (key !== '?' || modifier || other || isInField(event) || IN_BROWSER.get(LIST_KEY) === OFF) return null
  return 'keys'
}

export function isInField(event: KeyboardEvent): boolean {
  // The text of a policy is in a shadow root.
  const [target] = event.composedPath()
  return target instanceof HTMLElement && (target.isContentEditable || FIELDS.has(target.tagName))
}

const FIELDS = new Set(['INPUT', 'SELECT', 'TEXTAREA'])
export const IS_MAC = /^(?:Mac|iP)/.test(navigator.platform)
/** Whether the key `?` works. Speech input can press single keys by mistake. */
export const LIST_KEY = 'gatehouse.list-key'
export const OFF = 'off'
