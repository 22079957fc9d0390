"""How the explorer looks: it uses the page's own colours, so it fits light and dark themes."""

from __future__ import annotations

#: The tiers have the charts' colours (`charts.style`), which show on white and on black. Text has
#: the page's own colour, and so has everything else, only fainter.
CSS = """
<style>
.lakelog-explorer { --ll-cold: #0173b2; --ll-hot: #de8f05; --ll-skipped: #cc78bc;
  --ll-wrong: #c0392b;
  --ll-line: rgba(128,128,128,.35); --ll-faint: rgba(128,128,128,.12);
  color: var(--jp-ui-font-color1, inherit); max-width: 100%; overflow-x: hidden; }
[data-jp-theme-light="false"] .lakelog-explorer, .vscode-dark .lakelog-explorer {
  color-scheme: dark;
  --jp-widgets-dropdown-arrow: url("data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' \
viewBox='0 0 18 18'%3E%3Cpath fill='%23ccc' d='M5 7h8l-4 5z'/%3E%3C/svg%3E");
  --ll-cold: #5aa6e0; --ll-hot: #f0a546; --ll-wrong: #ff7b6b; }
.lakelog-explorer .widget-html, .lakelog-explorer .jupyter-widgets.widget-html,
.lakelog-explorer .widget-html-content { max-width: 100%; min-width: 0; line-height: 1.4;
  align-self: stretch; }
.lakelog-explorer .ll-row { flex-wrap: wrap; align-items: center; overflow: visible; }
.lakelog-explorer .lakelog-progress { align-self: center; }
.lakelog-explorer .ll-toolbar { gap: 2px 4px; margin-bottom: 4px; }
.lakelog-explorer .lakelog-search input { font-family: var(--jp-code-font-family, monospace); }
.lakelog-explorer .lakelog-new { border-color: var(--ll-hot); }
.lakelog-explorer .ll-time { position: relative; height: 64px; margin: 0 8px; cursor: crosshair;
  border-bottom: 1px solid var(--ll-line); user-select: none; }
.lakelog-explorer .ll-time svg { display: block; width: 100%; height: 64px; }
.lakelog-explorer .ll-time path.ll-cold { fill: var(--ll-cold); }
.lakelog-explorer .ll-time path.ll-hot { fill: var(--ll-hot); }
.lakelog-explorer .ll-time path.ll-both { fill: var(--ll-cold); stroke: var(--ll-hot);
  stroke-width: 2px; vector-effect: non-scaling-stroke; }
.lakelog-explorer .ll-hover { fill: transparent; }
.lakelog-explorer .ll-hover:hover { fill: var(--ll-faint); }
.lakelog-explorer .ll-mark, .lakelog-explorer .ll-drawn { position: absolute; top: 0; bottom: 0;
  box-sizing: border-box; pointer-events: none; }
.lakelog-explorer .ll-mark.ll-archived { border-left: 2px dashed currentColor; opacity: .8; }
.lakelog-explorer .ll-mark.ll-start { border-left: 2px solid currentColor; opacity: .8; }
.lakelog-explorer .ll-mark.ll-page { top: auto; bottom: -5px; height: 4px; min-width: 4px;
  background: currentColor; border-radius: 2px; }
.lakelog-explorer .ll-mark.ll-group { border-left: 2px dotted var(--ll-skipped);
  border-top: 6px solid var(--ll-skipped); min-width: 6px; pointer-events: auto; }
.lakelog-explorer .ll-label { position: absolute; max-width: 12em; padding: 0 4px; font-size: 11px;
  font-weight: normal; line-height: 14px; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; background: var(--jp-layout-color1, Canvas);
  border: 1px solid var(--ll-skipped); border-radius: 3px; }
.lakelog-explorer .ll-label.ll-after { left: 2px; }
.lakelog-explorer .ll-label.ll-before { right: 4px; }
.lakelog-explorer .ll-label.ll-row0 { top: 0; }
.lakelog-explorer .ll-label.ll-row1 { top: 17px; }
.lakelog-explorer .ll-label.ll-row2 { top: 34px; }
.lakelog-explorer .ll-line.ll-of-group { border-left: 2px dotted var(--ll-skipped); }
.lakelog-explorer .ll-mark.ll-chosen, .lakelog-explorer .ll-drawn {
  background: rgba(63,136,197,.2); outline: 1px solid rgba(63,136,197,.8); }
.lakelog-explorer .ll-drawn { left: 0; width: 0; outline-width: 0; }
.lakelog-explorer .ll-axis { position: relative; height: 1.5em; margin: 5px 8px 0; font-size: 80%;
  opacity: .75; overflow: hidden; font-variant-numeric: tabular-nums; }
.lakelog-explorer .ll-axis span { position: absolute; white-space: nowrap; padding-left: 3px;
  box-sizing: border-box; overflow: hidden;
  border-left: 1px solid var(--ll-line); }
.lakelog-explorer .lakelog-chosen { margin: -6px 0 -2px; height: 22px; padding: 0 8px; }
.lakelog-explorer .ll-told { display: flex; flex-wrap: wrap; justify-content: space-between;
  gap: 0 1.5em; font-size: 85%; opacity: .85; margin: 0 8px;
  font-variant-numeric: tabular-nums; }
.lakelog-explorer .ll-legends { display: inline-flex; flex-wrap: wrap; gap: 0 1.2em; }
.lakelog-explorer .ll-swatch { display: inline-block; width: .8em; height: .8em;
  margin-right: .35em; border-radius: 2px; vertical-align: -.05em; }
.lakelog-explorer .ll-swatch.ll-cold, .lakelog-explorer .ll-swatch.ll-both {
  background: var(--ll-cold); }
.lakelog-explorer .ll-swatch.ll-hot { background: var(--ll-hot); }
.lakelog-explorer .ll-swatch.ll-both { outline: 2px solid var(--ll-hot); outline-offset: -2px; }
.lakelog-explorer .ll-line { display: inline-block; height: .9em; margin-right: .35em;
  border-left: 2px dashed currentColor; vertical-align: -.1em; }
.lakelog-explorer .ll-page { gap: 12px; }
.lakelog-explorer .lakelog-side { border: 1px solid var(--ll-line); border-radius: 6px;
  padding: 8px 12px; background: var(--ll-faint); overflow: hidden; }
.lakelog-explorer .ll-scroll { overflow: auto; max-height: 32em; max-width: 100%;
  border: 1px solid var(--ll-line); border-radius: 3px; }
.lakelog-explorer .ll-tail { display: flex; flex-direction: column-reverse; }
.lakelog-explorer .ll-table { border-collapse: separate; border-spacing: 0; width: 100%;
  min-width: 46em; font-size: 90%; margin: 0; }
.lakelog-explorer .ll-table th, .lakelog-explorer .ll-table td { padding: 2px 8px;
  text-align: left; vertical-align: top; white-space: nowrap; border: 0;
  border-bottom: 1px solid var(--ll-line); background: transparent; }
.lakelog-explorer .ll-table tr:last-child td { border-bottom: 0; }
.lakelog-explorer .ll-table th { font-weight: 600; position: sticky; top: 0; z-index: 1;
  background: var(--jp-layout-color1, var(--vscode-editor-background, Canvas)); }
.lakelog-explorer .ll-table .ll-c-part, .lakelog-explorer .ll-table .ll-c-offset,
.lakelog-explorer .ll-table .ll-c-size { text-align: right; }
.lakelog-explorer .ll-table .ll-c-number { text-align: right; }
.lakelog-explorer .ll-table td.ll-c-member { max-width: 16em; overflow: hidden;
  text-overflow: ellipsis; }
.lakelog-explorer .ll-table th.ll-c-member { cursor: pointer; line-height: 1.25; }
.lakelog-explorer .ll-spread { display: inline-block; vertical-align: bottom; }
.lakelog-explorer .ll-spread rect { fill: currentColor; opacity: .45; }
.lakelog-explorer .ll-table tr.ll-cold td:first-child { box-shadow: inset 3px 0 var(--ll-cold); }
.lakelog-explorer .ll-table tr.ll-hot td:first-child { box-shadow: inset 3px 0 var(--ll-hot); }
.lakelog-explorer .ll-table tr.ll-both td:first-child {
  box-shadow: inset 3px 0 var(--ll-cold), inset 6px 0 var(--ll-hot); }
.lakelog-explorer .ll-table td { font-variant-numeric: tabular-nums; }
.lakelog-explorer .ll-table td.ll-c-key, .lakelog-explorer .ll-table td.ll-c-value,
.lakelog-explorer .ll-table td.ll-c-headers { font-family: var(--jp-code-font-family, monospace);
  overflow: hidden; text-overflow: ellipsis; }
.lakelog-explorer .ll-table td.ll-c-key { max-width: 14em; }
.lakelog-explorer .ll-table td.ll-c-value { max-width: 0; width: 100%; }
.lakelog-explorer .ll-table td.ll-c-headers { max-width: 16em; }
.lakelog-explorer .ll-table tr[data-offset] { cursor: pointer; }
.lakelog-explorer .ll-table tr[data-offset]:hover td { background: var(--ll-faint); }
.lakelog-explorer .ll-table tr:focus { outline: 2px solid var(--jp-brand-color1, #3f88c5);
  outline-offset: -2px; }
.lakelog-explorer .ll-table td.ll-none { text-align: center; opacity: .7; padding: 1em; }
.lakelog-explorer .ll-tier { display: inline-block; min-width: 2.6em; padding: 0 .4em;
  text-align: center; border-radius: 3px; border: 1px solid var(--ll-line);
  line-height: 1.35; }
.lakelog-explorer .ll-tier.ll-cold, .lakelog-explorer .ll-tier.ll-both {
  border-left: 6px solid var(--ll-cold); }
.lakelog-explorer .ll-tier.ll-hot { border-left: 6px solid var(--ll-hot); }
.lakelog-explorer .ll-tier.ll-both { border-right: 6px solid var(--ll-hot); }
.lakelog-explorer .ll-nothing, .lakelog-explorer .ll-kind, .lakelog-explorer .ll-cut {
  opacity: .65; }
.lakelog-explorer .ll-kind, .lakelog-explorer .ll-cut { font-size: 85%;
  font-family: var(--jp-ui-font-family, sans-serif); }
.lakelog-explorer .ll-fields { border-collapse: collapse; font-size: 90%; margin: 0; }
.lakelog-explorer .ll-fields th, .lakelog-explorer .ll-fields td { text-align: left;
  vertical-align: top; padding: 1px 10px 1px 0; border: 0; background: transparent;
  overflow-wrap: anywhere; }
.lakelog-explorer .ll-fields th { font-weight: 600; white-space: nowrap; }
.lakelog-explorer .ll-fields .ll-fields th { white-space: normal; min-width: 6em; }
.lakelog-explorer .ll-fields pre { margin: 2px 0; padding: 6px 8px; max-height: 24em;
  overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--ll-faint);
  color: inherit; border: 0; border-radius: 3px;
  font-family: var(--jp-code-font-family, monospace); }
.lakelog-explorer .ll-block { content-visibility: auto; contain-intrinsic-size: auto 130em; }
.lakelog-explorer .ll-headers-box { max-height: 24em; overflow: auto; }
.lakelog-explorer .lakelog-side .ll-fields { width: 100%; }
.lakelog-explorer .lakelog-side .ll-fields th { width: 1%; }
.lakelog-explorer .lakelog-side button { border: 1px solid var(--ll-line); }
.lakelog-explorer .lakelog-stop:disabled { display: none; }
.lakelog-explorer .ll-code { font-family: var(--jp-code-font-family, monospace);
  overflow-wrap: anywhere; user-select: all; }
.lakelog-explorer .ll-note { font-size: 90%; opacity: .9; }
.lakelog-explorer .ll-error { border-left: 4px solid var(--ll-wrong); padding: 4px 8px;
  background: rgba(192,57,43,.12); overflow-wrap: anywhere; white-space: pre-wrap; }
.lakelog-explorer .ll-busy { display: inline-flex; align-items: center; gap: .5em;
  font-size: 90%; min-height: 1.4em; font-variant-numeric: tabular-nums; }
.lakelog-explorer .ll-busy progress { width: 10em; }
</style>
"""
