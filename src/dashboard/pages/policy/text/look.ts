import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

/**
 * Rules of CodeMirror that load a picture from a `data:` address, which the page forbids, are replaced, and all colours
 * are those of the palette.
 */
const THEME = EditorView.theme({
  '&': {
    ...{ color: 'var(--text)', backgroundColor: 'var(--card)', border: '1px solid var(--edge)' },
    ...{ borderRadius: '0.375rem', fontSize: '0.875rem', maxHeight: 'min(70vh, 48rem)' },
  },
  '&.cm-focused': { outline: '3px solid var(--link)', outlineOffset: '2px' },
  '.cm-scroller': {
    ...{ fontFamily: 'ui-monospace, Menlo, Consolas, monospace', lineHeight: '1.45', overflow: 'auto' },
  },
  '.cm-content': { minHeight: '24rem', caretColor: 'var(--text)' },
  '.cm-gutters': {
    ...{ color: 'var(--soft-text)', backgroundColor: 'var(--card)', borderRight: '1px solid var(--line)' },
  },
  '.cm-gutter-lint': { width: '1em' },
  '.cm-lint-marker': { ...{ content: 'normal', width: '1em', fontWeight: '700', textAlign: 'center' } },
  '.cm-lint-marker-error': { content: 'normal', color: 'var(--bad)' },
  '.cm-lint-marker-error::before': { content: '"✕"' },
  '.cm-lint-marker-warning': { content: 'normal', color: 'var(--warn)' },
  '.cm-lint-marker-warning::before': { content: '"!"' },
  '.cm-lintRange': { paddingBottom: '0' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--bad)' },
  '.cm-lintRange-warning': { backgroundImage: 'none', textDecoration: 'underline wavy var(--warn)' },
  '.cm-lintRange-active': { backgroundColor: 'var(--soft)' },
  '.cm-lintPoint::after': { borderBottomColor: 'var(--bad)' },
  '.cm-lintPoint-warning::after': { borderBottomColor: 'var(--warn)' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
  '.cm-diagnostic-warning': { borderLeftColor: 'var(--warn)' },
  '&.cm-focused .cm-matchingBracket, .cm-matchingBracket': {
    ...{ backgroundColor: 'var(--soft)', outline: '1px solid var(--edge)' },
  },
  '&.cm-focused .cm-nonmatchingBracket, .cm-nonmatchingBracket': {
    ...{ backgroundColor: 'transparent', color: 'var(--bad)' },
  },
  '.cm-searchMatch': { backgroundColor: 'var(--soft)', outline: '1px solid var(--edge)' },
  '.cm-searchMatch-selected': { backgroundColor: 'var(--soft)', outline: '2px solid var(--link)' },
  '.cm-selectionMatch': { backgroundColor: 'var(--soft)' },
  '.cm-panels': { color: 'var(--text)', backgroundColor: 'var(--soft)' },
  '.cm-panels-bottom': { borderTop: '1px solid var(--line)' },
  '.cm-textfield, .cm-button': {
    ...{ color: 'var(--text)', backgroundColor: 'var(--card)', backgroundImage: 'none' },
    ...{ border: '1px solid var(--edge)', borderRadius: '0.375rem', fontSize: 'inherit' },
  },
  '.cm-panel.cm-search button[name=close], .cm-panel.cm-panel-lint button[name=close]': {
    color: 'var(--text)',
  },
  '.cm-panel.cm-panel-lint ul [aria-selected]': { backgroundColor: 'var(--card)' },
  '.cm-tooltip': {
    ...{ color: 'var(--text)', backgroundColor: 'var(--card)', border: '1px solid var(--edge)' },
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'inherit', minWidth: '12rem' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '0.25rem 0.5rem' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    ...{ color: 'var(--on-main)', backgroundColor: 'var(--main)' },
  },
  '.cm-tooltip.cm-completionInfo': { maxWidth: 'min(22rem, 80vw)', fontFamily: 'system-ui, sans-serif' },
  '.cm-completionDetail': { fontStyle: 'normal' },
  // Phones make the page larger to write in smaller text.
  '@media (pointer: coarse)': { '&': { fontSize: '1rem' } },
  '@media (prefers-contrast: more)': { '.cm-gutters': { color: 'var(--text)' } },
  // The system replaces colours of grounds, so these need edges.
  '@media (forced-colors: active)': {
    '.cm-tooltip-autocomplete ul li[aria-selected]': {
      outline: '2px solid Highlight',
      outlineOffset: '-2px',
    },
  },
})

const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--key)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--quoted)' },
  { tag: tags.comment, color: 'var(--soft-text)', fontStyle: 'italic' },
  { tag: [tags.typeName, tags.labelName, tags.keyword], color: 'var(--quoted)' },
])

/** The colours and sizes of the text editor. */
export const LOOK: Extension = [THEME, syntaxHighlighting(COLOURS)]
