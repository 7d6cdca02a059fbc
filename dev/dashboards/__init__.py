"""Grafana dashboards of the chart, written from a list of panels each."""
