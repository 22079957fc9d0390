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
.lakelog-explorer .widget-html, .lakelog-explorer .jupyter-widgets.widget-html,
.lakelog-explorer .widget-html-content { max-width: 100%; min-width: 0; line-height: 1.4;
  align-self: stretch; }
.lakelog-explorer .ll-row { flex-wrap: wrap; align-items: center; overflow: visible; }
.lakelog-explorer .lakelog-progress { align-self: center; }
.lakelog-explorer .lakelog-slider { margin: 0 2px -8px; }
.lakelog-explorer .ll-map { position: relative; display: flex; height: 10px; overflow: hidden;
  margin: 0 6px; /* as the slider's track */
  border-radius: 3px; background: var(--ll-faint); }
.lakelog-explorer .ll-part { flex: 0 1 0; min-width: 1px; }
.lakelog-explorer .ll-part.ll-cold, .lakelog-explorer .ll-swatch.ll-cold {
  background: var(--ll-cold); }
.lakelog-explorer .ll-part.ll-hot, .lakelog-explorer .ll-swatch.ll-hot {
  background: var(--ll-hot); }
.lakelog-explorer .ll-part.ll-both, .lakelog-explorer .ll-swatch.ll-both { background:
  repeating-linear-gradient(45deg, var(--ll-cold) 0 4px, var(--ll-hot) 4px 8px); }
.lakelog-explorer .ll-part.ll-skipped, .lakelog-explorer .ll-swatch.ll-skipped { background:
  repeating-linear-gradient(45deg, var(--ll-skipped) 0 2px, transparent 2px 6px); }
.lakelog-explorer .ll-here { position: absolute; top: 0; bottom: 0; min-width: 3px;
  box-sizing: border-box; border: 2px solid currentColor; border-radius: 2px; }
.lakelog-explorer .ll-legends { display: flex; flex-wrap: wrap; gap: 0 1.2em; margin: 0 6px;
  font-size: 85%; opacity: .85; font-variant-numeric: tabular-nums; }
.lakelog-explorer .ll-swatch { display: inline-block; width: .8em; height: .8em;
  margin-right: .35em; border-radius: 2px; vertical-align: -.05em; }
.lakelog-explorer .ll-scroll { overflow: auto; max-height: 32em; max-width: 100%;
  border: 1px solid var(--ll-line); border-radius: 3px; }
.lakelog-explorer .ll-tail { display: flex; flex-direction: column-reverse; }
.lakelog-explorer .ll-table { border-collapse: separate; border-spacing: 0; width: 100%;
  min-width: 60em; font-size: 90%; margin: 0; }
.lakelog-explorer .ll-table th, .lakelog-explorer .ll-table td { padding: 2px 8px;
  text-align: left; vertical-align: top; white-space: nowrap; border: 0;
  border-bottom: 1px solid var(--ll-line); background: transparent; }
.lakelog-explorer .ll-table tr:last-child td { border-bottom: 0; }
.lakelog-explorer .ll-table th { font-weight: 600; position: sticky; top: 0; z-index: 1;
  background: var(--jp-layout-color1, var(--vscode-editor-background, Canvas)); }
.lakelog-explorer .ll-table td.ll-c-offset, .lakelog-explorer .ll-table th.ll-c-offset,
.lakelog-explorer .ll-table td.ll-c-size, .lakelog-explorer .ll-table th.ll-c-size {
  text-align: right; }
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
