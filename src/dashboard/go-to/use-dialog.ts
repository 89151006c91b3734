import type { RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** A modal dialog that is open as long as its component is there. The focus returns to where it was. */
export function useDialog(closed: () => void): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null)
  // A layout effect ends before its dialog is removed.
  useLayoutEffect(() => {
    const opened = dialog.current!
    opened.showModal()
    opened.addEventListener('close', closed)
    return () => {
      // Another dialog may be there already.
      opened.removeEventListener('close', closed)
      opened.close()
    }
  }, [closed])
  return dialog
}
